"""Where the data that ships with the package lies: beside the package in a wheel, at the top of a clone."""

from functools import cache
from pathlib import Path

from kernel_forge.domain.errors import InternalError


@cache
def kb_folder() -> Path:
    """The knowledge base (``kb/``).

    Raises:
        InternalError: the installation is incomplete.
    """
    package = Path(__file__).resolve().parent
    for candidate in (package / "_data" / "kb", package.parent.parent / "kb"):
        if (candidate / "rules").is_dir():
            return candidate
    raise InternalError("the folder kb/ is missing from this installation; install kernel-forge-lsp again")


@cache
def prompts_folder() -> Path:
    """The prompts for models (``prompts/``).

    Raises:
        InternalError: the installation is incomplete.
    """
    package = Path(__file__).resolve().parent
    for candidate in (package / "_data" / "prompts", package.parent.parent / "prompts"):
        if (candidate / "lock.toml").is_file():
            return candidate
    raise InternalError("the folder prompts/ is missing from this installation; install kernel-forge-lsp again")


def rule_page(code: str) -> Path:
    """The page that explains a ``KF`` code (it may not exist for a code of a newer version)."""
    return kb_folder() / "rules" / f"{code}.md"
