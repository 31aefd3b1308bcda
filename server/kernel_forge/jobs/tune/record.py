"""A search in the ledger: what is needed to go on with it in another process, and to compare it later."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from kernel_forge import __version__
from kernel_forge.domain.errors import LedgerUnavailable
from kernel_forge.domain.record import Entry, Json, Kind, Platform, Record, Selection, Subject
from kernel_forge.domain.spec import Configuration, Sizes
from kernel_forge.domain.tuning import KernelTuning, TunedTrial
from kernel_forge.jobs.requests import TuneRequest
from kernel_forge.jobs.tune.failures import NOT_ANSWERED
from kernel_forge.jobs.wire import encode
from kernel_forge.ports import Ledger
from kernel_forge.verify import master_seed

LOOKED_AT = 20


@dataclass
class SearchRecord:
    """Writes one search down while it runs.

    Without a ledger nothing is kept. Where it fails, the search goes on unrecorded and ``trouble`` says why.

    Attributes:
        run: number of the search in the ledger.
        claim: what lets go of the search, which no other process can go on with meanwhile.
        seed: of the inputs and the sampler.
        taken: trials of an earlier process, which this one goes on from.
    """

    ledger: Ledger | None
    basis: str
    seed: int
    run: int | None = None
    taken: tuple[TunedTrial, ...] = ()
    trouble: str | None = None
    claim: Callable[[], None] | None = None

    @property
    def troubles(self) -> tuple[str, ...]:
        """The trouble, where there was any."""
        return () if self.trouble is None else (self.trouble,)

    def release(self) -> None:
        """Let others go on with the search, where it has not ended."""
        if self.claim is not None:
            self.claim()
            self.claim = None

    def trial(self, number: int, trial: TunedTrial) -> None:
        """Write a trial down: once this returns it outlives the process."""
        timed = trial.seconds is not None
        self._append(
            Kind.TRIAL,
            {"type": "Timed"} if timed else {"type": "Failed", "message": trial.failure},
            configuration=trial.configuration,
            details={"number": number, "seconds": trial.seconds, "early": trial.early, "reason": trial.reason},
        )

    def end(self, tuning: KernelTuning, device_name: str) -> None:
        """Write the end down; the search cannot be gone on with after that."""
        speedup = tuning.winner.speedup
        self._append(
            Kind.TUNE_END,
            {"type": "Tuned", "improved": tuning.is_improved},
            configuration=tuning.winner.configuration,
            sizes=tuning.cases[0],
            seconds=tuning.seconds,
            measurement=encode(tuning.winner.times[0]),
            details={
                "kernel": tuning.kernel,
                "parameters": sorted(tuning.space.parameters),
                "device_name": device_name,
                "ended": tuning.ended,
                "trials": len(tuning.trials),
                "failed": tuning.failed,
                "speedup": None if speedup is None else encode(speedup),
                "cases": [dict(c) for c in tuning.cases],
                "rejected": [encode(v.configuration) for v in tuning.rejected],
            },
        )

    def gave_up(self, outcome: Mapping[str, Json]) -> None:
        """Write down that the search ended without a winner."""
        self._append(Kind.TUNE_END, outcome)

    def begin(self, subject: Subject, platform: Platform, details: Mapping[str, Json], sizes: Sizes) -> None:
        """Write down that the search begins."""
        entry = self._append(
            Kind.TUNE,
            {"type": "Begun"},
            subject=subject,
            platform=platform,
            details=details,
            sizes=sizes,
            seed=self.seed,
        )
        self.run = None if entry is None else entry.number
        if self.ledger is not None and self.run is not None:
            self.claim = self.ledger.claim(self.run)

    def _append(self, kind: Kind, outcome: Mapping[str, Json], **more: Any) -> Entry | None:
        if self.ledger is None or self.trouble is not None:
            return None
        run = None if kind is Kind.TUNE else self.run
        record = Record(
            kind=kind, basis=self.basis, tool=__version__, started=datetime.now(UTC), outcome=outcome, run=run, **more
        )
        try:
            return self.ledger.append(record)
        except LedgerUnavailable as error:
            self.trouble = f"this search is not recorded and cannot be gone on with: {error}"
            return None


def open_record(
    ledger: Ledger | None,
    request: TuneRequest,
    subject: Subject,
    platform: Platform,
    cases: Sequence[Sizes],
    fixed: Configuration,
    seed: int,
) -> SearchRecord:
    """The record of a search: that of an unfinished one of the very same, where there is one and none fresh is wanted.

    The same: code, spec, headers, compiler, device, cases, fixed tunables and sampler, and the seed where one is given.
    """
    details: dict[str, Json] = {
        "cases": [dict(c) for c in cases],
        "fixed": dict(fixed),
        "sampler": request.sampler,
        "budget": encode(request.budget),
    }
    made = SearchRecord(ledger, platform.basis, seed)
    if ledger is not None and not request.fresh:
        try:
            found = _unfinished(ledger, request, subject, platform, details)
            made.claim = None if found is None else ledger.claim(found.number)
        except LedgerUnavailable as error:
            made.trouble = f"this search is not recorded and cannot be gone on with: {error}"
            return made
        if found is not None and made.claim is not None:  # else a process that lives is at it
            made.run, made.seed = found.number, seed if found.record.seed is None else found.record.seed
            made.taken = _trials(ledger, found.number, len(cases))
            return made
    made.begin(subject, platform, details, cases[0])
    return made


def _unfinished(
    ledger: Ledger, request: TuneRequest, subject: Subject, platform: Platform, details: Mapping[str, Json]
) -> Entry | None:
    selection = Selection(path=subject.path, kernel=subject.kernel, kinds=(Kind.TUNE,), limit=LOOKED_AT)
    for entry in ledger.entries(selection):
        record = entry.record
        same = (
            record.subject is not None
            and record.platform is not None
            and _essence(record.subject, record.platform) == _essence(subject, platform)
            and all(record.details.get(k) == details[k] for k in ("cases", "fixed", "sampler"))
            and (request.seed is None or master_seed(request.seed) == record.seed)
        )
        if same and entry.key is not None and entry.number in {e.number for e in ledger.unfinished(entry.key)}:
            return entry
    return None


def _essence(subject: Subject, platform: Platform) -> tuple[object, ...]:
    """What must be equal for times to be of the same thing; paths may be written relative in one of two."""
    return (
        (subject.kernel, subject.source, subject.spec, sorted(subject.files.values())),
        (platform.device, platform.basis, platform.compiler, platform.driver),
        (tuple(platform.include_dirs), dict(platform.defines), tuple(platform.flags)),
    )


def _trials(ledger: Ledger, run: int, cases: int) -> tuple[TunedTrial, ...]:
    """The trials of a search, in the order in which they were told; what is none of ours is passed over."""
    found = []
    for entry in reversed(ledger.entries(Selection(run=run, kinds=(Kind.TRIAL,)))):
        record = entry.record
        if str(record.outcome.get("message")).startswith(NOT_ANSWERED):
            continue  # the device had no answer then; it may now
        seconds = record.details.get("seconds")
        times = None
        if seconds is not None:
            if not isinstance(seconds, Sequence) or len(seconds) != cases or not all(map(_is_time, seconds)):
                continue
            times = tuple(float(s) for s in seconds)  # type: ignore[arg-type]
        message = record.outcome.get("message")
        failure = str(message) if times is None else None
        reason = record.details.get("reason")
        made = TunedTrial(dict(record.configuration), times, failure, bool(record.details.get("early")))
        found.append(replace(made, reason=None if reason is None else str(reason)))
    return tuple(found)


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0
