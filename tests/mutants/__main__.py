"""``python -m tests.mutants``: see :mod:`tests.mutants.campaign`."""

import sys

from tests.mutants.campaign import main

if __name__ == "__main__":
    sys.exit(main())
