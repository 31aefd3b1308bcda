"""A model that answers from a script, for tests and demonstrations; it checks and counts as a real one does."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace

from kernel_forge.domain.errors import InternalError
from kernel_forge.domain.model import FailureKind, ModelFailure, ModelProgress, ModelReply, ModelRequest
from kernel_forge.llm.budget import Meter
from kernel_forge.llm.calls import Calls
from kernel_forge.llm.outgoing import Outgoing, outgoing

Scripted = ModelReply | ModelFailure | Callable[[ModelRequest], ModelReply | ModelFailure]


class ScriptedModel:
    """A ``Model`` (see ``ports``) that gives the answers of its script in order, each after ``seconds``.

    Attributes:
        requests: what was asked, as it would have been sent.
    """

    name = "scripted"

    def __init__(self, script: Iterable[Scripted], meter: Meter | None = None, seconds: float = 0.0) -> None:
        self.requests: list[ModelRequest] = []
        self._script = iter(script)
        self._meter = meter or Meter()
        self._seconds = seconds
        self._calls = Calls()

    def preview(self, request: ModelRequest) -> str | ModelFailure:
        """See ``ports.Model``."""
        checked = outgoing(request)
        return checked.text if isinstance(checked, Outgoing) else checked

    async def ask(
        self, request: ModelRequest, progress: Callable[[ModelProgress], None] = lambda _: None
    ) -> ModelReply | ModelFailure:
        """See ``ports.Model``.

        Raises:
            InternalError: the script has no more answers.
        """
        checked = outgoing(request)
        if isinstance(checked, ModelFailure):
            return checked
        return await self._calls.run(self._answer(checked.request, progress))

    def cancel(self) -> None:
        """See ``ports.Model``."""
        self._calls.cancel()

    async def _answer(
        self, request: ModelRequest, progress: Callable[[ModelProgress], None]
    ) -> ModelReply | ModelFailure:
        line = next(self._script, None)
        if line is None:
            raise InternalError(f"the script has no answer to request {len(self.requests) + 1}")
        answer = line(request) if callable(line) else line
        tokens = 0 if answer.usage is None else answer.usage.total
        # A script knows beforehand what its answer costs, so that is its worst case.
        reservation = self._meter.reserve(answer.cost, tokens)
        if isinstance(reservation, ModelFailure):
            return replace(reservation, model=self.name)
        try:
            self.requests.append(request)
            await asyncio.sleep(self._seconds)
            if answer.text:
                progress(ModelProgress(1, len(answer.text), answer.text))
            return answer
        finally:
            self._meter.settle(reservation, answer.cost, tokens)


def failing(kind: FailureKind, reason: str = "as the script says") -> ModelFailure:
    """A failure for a script."""
    return ModelFailure(kind, reason, ScriptedModel.name)
