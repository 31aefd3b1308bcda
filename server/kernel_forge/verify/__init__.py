"""Stage 3: believe nothing.

Invariant: the tolerance comes from the contract and the reference, never from the code under test; a question
that the device could not answer is ``Unavailable``, never a pass.
"""

from kernel_forge.verify.inputs import master_seed
from kernel_forge.verify.policy import verify

__all__ = ["master_seed", "verify"]
