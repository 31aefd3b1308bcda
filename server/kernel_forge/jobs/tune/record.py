"""A search in the ledger: what is needed to go on with it in another process, and to compare it later."""

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
from kernel_forge.jobs.tune.same_search import differences
from kernel_forge.jobs.wire import encode
from kernel_forge.ports import Ledger
from kernel_forge.verify import master_seed

LOOKED_AT = 20


@dataclass
class SearchRecord:
    """Writes one search down while it runs.

    Without a ledger nothing is kept. Where it fails, the search goes on unrecorded and ``trouble`` says why; what was
    written until then, another process may go on with.

    Attributes:
        run: number of the search in the ledger; None where it is not recorded, or not any more.
        claim: what lets go of the search, which no other process can go on with meanwhile.
        seed: of the inputs and the sampler.
        taken: trials of an earlier process, which this one goes on from.
        left: why an unfinished search is not gone on with, where that is worth saying.
        next_number: of the trials written down; at least what the next one gets.
    """

    ledger: Ledger | None
    basis: str
    seed: int
    run: int | None = None
    taken: tuple[TunedTrial, ...] = ()
    trouble: str | None = None
    claim: Callable[[], None] | None = None
    left: str | None = None
    next_number: int = 0

    @property
    def troubles(self) -> tuple[str, ...]:
        """What is to be said of the record, where there is anything."""
        return tuple(each for each in (self.left, self.trouble) if each is not None)

    def release(self) -> None:
        """Let others go on with the search, where it has not ended."""
        if self.claim is not None:
            self.claim()
            self.claim = None

    def trial(self, number: int, trial: TunedTrial) -> None:
        """Write a trial down: once this returns it outlives the process.

        Where trials of an earlier process were left out, ``number`` may be one of theirs: it gets the next free one.
        """
        number = max(number, self.next_number)
        self.next_number = number + 1
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
                "seconds": [t.seconds for t in tuning.winner.times],
                "search_seconds": tuning.search_seconds,
                "early": sum(t.early for t in tuning.trials),
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
        if self.ledger is None or entry is None:
            return
        self.run = entry.number
        try:
            self.claim = self.ledger.claim(self.run)
        except LedgerUnavailable as error:
            self.fail(error)

    def take_over(self, ledger: Ledger, found: Entry, cases: int) -> None:
        """Go on with the unfinished search ``found`` of another process, where that does not live and nothing is wrong.

        Raises:
            LedgerUnavailable: as from the ledger; the search is left to others.
        """
        self.claim = ledger.claim(found.number)
        if self.claim is None:
            return  # a process that lives is at it
        try:
            if not _is_unfinished(ledger, found):
                self.release()  # it ended between looking it up and claiming it
                return
            bad = ledger.check(found.number)
            if bad is not None:
                self.left = (
                    f"the unfinished search, run {found.number}, is not gone on with: entry {bad.number} of "
                    f"{ledger.place} {bad.reason}; kernel-forge audit says more"
                )
                self.release()
                return
            self.taken, self.next_number = _trials(ledger, found.number, cases)
        except LedgerUnavailable:
            self.release()
            raise
        self.run, self.seed = found.number, self.seed if found.record.seed is None else found.record.seed

    def fail(self, error: LedgerUnavailable) -> None:
        """Go on unrecorded because of ``error``."""
        self.trouble = f"this search is not recorded and cannot be gone on with: {error}"
        self.run = None
        self.release()

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
            self.fail(error)
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

    What the very same is, :mod:`kernel_forge.jobs.tune.same_search` says.
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
            found, made.left = _unfinished(ledger, request, subject, platform, details)
            if found is not None:
                made.take_over(ledger, found, len(cases))
        except LedgerUnavailable as error:
            made.fail(error)
    if made.run is None and made.trouble is None:
        made.begin(subject, platform, details, cases[0])
    return made


def _unfinished(
    ledger: Ledger, request: TuneRequest, subject: Subject, platform: Platform, details: Mapping[str, Json]
) -> tuple[Entry | None, str | None]:
    """The unfinished search to go on with, or why the newest, which is unfinished, is none."""
    selection = Selection(path=subject.path, kernel=subject.kernel, kinds=(Kind.TUNE,), limit=LOOKED_AT)
    seed = None if request.seed is None else master_seed(request.seed)
    left = None
    for place, entry in enumerate(ledger.entries(selection)):
        differ = differences(entry.record, subject, platform, details, seed)
        if differ and place:  # of older ones only that is of interest which can be gone on with
            continue
        if not _is_unfinished(ledger, entry):
            continue
        if not differ:
            return entry, None
        left = _left(ledger, entry, differ)
    return None, left


def _left(ledger: Ledger, entry: Entry, differ: Sequence[str]) -> str | None:
    """That a search is left as it is; None where a living process is at it."""
    release = ledger.claim(entry.number)
    if release is None:
        return None
    release()
    changed = ", ".join(differ)
    return f"the unfinished search, run {entry.number}, is not gone on with, because of what has changed: {changed}"


def _is_unfinished(ledger: Ledger, begun: Entry) -> bool:
    return begun.key is not None and begun.number in {entry.number for entry in ledger.unfinished(begun.key)}


def _trials(ledger: Ledger, run: int, cases: int) -> tuple[tuple[TunedTrial, ...], int]:
    """The trials of a search, in the order in which they were told, and the next number that none of them has.

    What has times of other cases is passed over, and what the device had no answer for: it may have one now.
    """
    found, next_number = list[TunedTrial](), 0
    for entry in reversed(ledger.entries(Selection(run=run, kinds=(Kind.TRIAL,)))):
        record, details = entry.record, entry.record.details
        message, seconds, reason = record.outcome.get("message"), details.get("seconds"), details.get("reason")
        number = details.get("number")
        if isinstance(number, int):
            next_number = max(next_number, number + 1)
        times = None
        if isinstance(seconds, Sequence):
            times = tuple(float(s) for s in seconds if isinstance(s, int | float))
            if len(times) != cases:
                continue
        elif str(message).startswith(NOT_ANSWERED):
            continue
        failure = str(message) if times is None else None
        made = TunedTrial(dict(record.configuration), times, failure, bool(details.get("early")))
        found.append(replace(made, reason=None if reason is None else str(reason)))
    return tuple(found), next_number
