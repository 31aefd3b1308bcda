"""The command line: the same jobs as in the editor, headless.

Exit codes: 0 good, 1 a verdict or a spec failed, 2 wrong use, 3 device unavailable, 70 a fault of
ours, 130 interrupted.
"""

from kernel_forge.cli.main import Adapters, run

__all__ = ["Adapters", "run"]
