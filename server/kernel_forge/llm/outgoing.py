"""What leaves the machine for a request: cleaned of paths, searched for secrets, and nothing besides its parts."""

import json
from dataclasses import dataclass, replace

from kernel_forge.domain.model import FailureKind, ModelFailure, ModelRequest, Part
from kernel_forge.llm.paths import without_paths
from kernel_forge.llm.secret_scan import scan


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request that may be sent; only :func:`outgoing` makes one."""

    request: ModelRequest

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """Every text that is sent, in order, each with what it is."""
        request = self.request
        answer = request.answer
        shape = () if answer is None else (("answer", f"{answer.name}\n{answer.description}\n{schema_text(request)}"),)
        parts = tuple((part.kind.value, part.text) for part in (*request.stable, *request.parts))
        return (*shape, ("system", request.system), *parts)

    @property
    def text(self) -> str:
        """The sections verbatim, each under a line that names it."""
        return "\n".join(f"--- {name}\n{text}" for name, text in self.sections) + "\n"


def outgoing(request: ModelRequest) -> Outgoing | ModelFailure:
    """The request without absolute paths; or why it stays here, where it seems to hold a secret."""
    cleaned = Outgoing(
        replace(
            request,
            system=without_paths(request.system),
            stable=tuple(map(_cleaned, request.stable)),
            parts=tuple(map(_cleaned, request.parts)),
        )
    )
    # The parts as they came are searched too: a secret in a path is one that somebody should know of.
    found = [
        f"{name}, line {leak.line}: {leak.kind}"
        for way in (cleaned, Outgoing(request))
        for name, text in way.sections
        for leak in scan(text)
    ]
    if not found:
        return cleaned
    places = "; ".join(dict.fromkeys(found))
    return ModelFailure(FailureKind.SECRET, f"nothing was sent, as there seems to be a secret in it ({places})")


def schema_text(request: ModelRequest) -> str:
    """The schema of the answer as JSON; empty where it is text."""
    return "" if request.answer is None else json.dumps(request.answer.schema, ensure_ascii=False)


def _cleaned(part: Part) -> Part:
    return replace(part, text=without_paths(part.text))
