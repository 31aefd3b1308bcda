"""Writing a search's winner into the user's files as the default."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_forge.cli.replacement import replace_text
from kernel_forge.cli.targets import Target, read_text
from kernel_forge.domain.errors import SourceError, UsageError
from kernel_forge.domain.outcome import Passed
from kernel_forge.domain.tuning import KernelTuning
from kernel_forge.source import parse
from kernel_forge.spec import edited, make_default, read_specs
from kernel_forge.views.tuning import STAYS
from kernel_forge.views.words import caveat, pairs

NOT_OF_AN_EMULATION = (
    "it was chosen by CPU times of an emulation, which do not rank configurations for a GPU: tune with --device cuda, "
    "or add --apply-emulated to write it all the same"
)


@dataclass(frozen=True)
class Applied:
    """The files written, and the ``reason`` why not all, or none, were; ``is_expected`` where none was to be."""

    written: tuple[str, ...] = ()
    reason: str | None = None
    is_expected: bool = False
    notes: tuple[str, ...] = ()

    @property
    def is_failure(self) -> bool:
        """Whether something should have been written that was not."""
        return not self.is_expected and (self.reason is not None or not self.written)


class Files:
    """The texts of the targets as they were read, and as they are after what was applied meanwhile.

    ``emulated``: what was chosen by times of an emulation is applied, too.
    """

    def __init__(self, targets: list[Target], *, emulated: bool = False) -> None:
        self._emulated = emulated
        self._texts = {str(t.path): t.text for t in targets}
        self._texts.update(dict(t.sidecar for t in targets if t.sidecar is not None))
        self._sidecars = {str(t.path): t.sidecar[0] for t in targets if t.sidecar is not None}

    def apply(self, tuning: KernelTuning) -> Applied:
        """Make the winner the default in its file and sidecar, where it is verified and faster for sure."""
        if not tuning.is_improved:
            return Applied(reason=STAYS, is_expected=True)
        if not isinstance(tuning.verdict.outcome, Passed):
            return Applied(reason="the winner is not verified")
        if caveat(tuning.basis) is not None and not self._emulated:
            return Applied(reason=NOT_OF_AN_EMULATION)
        path, beside = tuning.path, self._sidecars.get(tuning.path)
        for name in (path, *((beside,) if beside is not None else ())):
            if not self._is_as_read(name):
                return Applied(reason=f"{name} has changed since it was read")
        source = parse(self._texts[path], path)
        sidecar = None if beside is None else (beside, self._texts[beside])
        spec = read_specs(source, sidecar).spec_of(tuning.kernel)
        if spec is None:
            return Applied(reason=f"the spec of {tuning.kernel} is gone")
        made = make_default(spec, source, tuning.winner.configuration, sidecar)
        if isinstance(made, str):
            return Applied(reason=made)
        written: list[str] = []
        for name, edits in made.edits.items():
            text = edited(self._texts[name], edits)
            try:
                replace_text(Path(name), text)
            except UsageError as error:
                return Applied(tuple(written), str(error))
            self._texts[name] = text
            written.append(name)
        return Applied(tuple(written), notes=made.notes)

    def _is_as_read(self, path: str) -> bool:
        try:
            return read_text(Path(path)) == self._texts[path]
        except SourceError:
            return False


def applied_lines(applied: Applied, tuning: KernelTuning) -> list[str]:
    """What became of ``--apply``, in words."""
    if not applied.written:
        return [f"  not applied: {applied.reason or 'it is the default already'}"]
    if applied.reason is not None:
        where = f"is written in {', '.join(applied.written)} only"
        return [f"  applied    in part: {pairs(tuning.winner.configuration)} {where}: {applied.reason}"]
    how = "" if caveat(tuning.basis) is None else ", chosen by CPU times of an emulation"
    where = ", ".join(applied.written)
    lines = [f"  applied    {pairs(tuning.winner.configuration)} is the default now in {where}{how}"]
    return lines + [f"             {note}" for note in applied.notes]


def applied_json(applied: Applied) -> dict[str, Any]:
    """The same as JSON data."""
    return {"written": list(applied.written), "reason": applied.reason, "notes": list(applied.notes)}
