"""What every device must do: see :mod:`tests.contracts.device_suite`."""
