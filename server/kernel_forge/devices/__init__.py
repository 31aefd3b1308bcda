"""Where kernels are compiled and run, behind :class:`kernel_forge.ports.Device`.

Invariant: knows ports and domain only. Only ``wiring`` imports this package.
"""
