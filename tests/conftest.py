"""What holds for all tests."""

import os

# Verifying the example kernels leaves no ledger in the working tree; tests of the ledger turn it on for themselves.
os.environ["KERNEL_FORGE_LEDGER"] = "off"
