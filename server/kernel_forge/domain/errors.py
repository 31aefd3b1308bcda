"""Exceptions: misconfiguration by the user, or a bug of ours. Never a verdict about a kernel.

What a kernel does wrong is a *value* (:mod:`kernel_forge.domain.outcome`), matched exhaustively.

    KernelForgeError
    ├── UsageError            the caller asked for something impossible (exit code 2)
    │   ├── ExpressionError   an arithmetic expression is malformed or cannot be evaluated
    │   ├── LedgerUnavailable the ledger cannot be written or read
    │   ├── ReferenceFailed, InputsFailed   (in verify/) the contract's own Python fails; ends as Unavailable
    │   └── SourceError       the file cannot be read as CUDA text (binary, too large, missing)
    ├── DeviceUnavailable     no device can serve the request (exit code 3)
    └── InternalError         our own bug; carries what to report
        └── PromptFileError, PromptInputsError  (in generate/) a prompt's file or its use is wrong
"""


class KernelForgeError(Exception):
    """Root of every exception raised on purpose by this package."""


class UsageError(KernelForgeError):
    """The request itself is wrong; the message says what to write instead."""


class ExpressionError(UsageError):
    """A spec expression is malformed, uses something not allowed, or cannot be evaluated.

    Attributes:
        offset: code points from the start of the expression to the fault, if known.
        length: code points of the faulty part (at least 1).
    """

    def __init__(self, message: str, offset: int = 0, length: int = 1) -> None:
        super().__init__(message)
        self.offset = offset
        self.length = length


class SourceError(UsageError):
    """The source cannot be used as CUDA text at all."""


class LedgerUnavailable(UsageError):
    """The ledger of a project cannot be written or read; the message names it and says why."""


class DeviceUnavailable(KernelForgeError):
    """No device can serve the request; the message says why and what to install."""


class InternalError(KernelForgeError):
    """An invariant of ours does not hold."""
