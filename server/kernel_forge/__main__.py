"""``python -m kernel_forge`` and the ``kernel-forge`` command."""

import sys


def main() -> None:
    """Run the command line; the process's exit status is its result."""
    from kernel_forge import wiring

    if sys.argv[1:2] == ["job-worker"]:
        wiring.serve_jobs()
        return
    if sys.argv[1:2] == ["worker"]:
        wiring.serve_gpu(sys.argv[2:])
        return
    from kernel_forge.cli import Adapters, run

    adapters = Adapters(
        wiring.device,
        wiring.device_names,
        wiring.serve_editor,
        wiring.ledger,
        wiring.recording_ledger,
        wiring.recorded_space,
    )
    sys.exit(run(sys.argv[1:], adapters))


if __name__ == "__main__":
    main()
