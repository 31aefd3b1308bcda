"""What came of tuning a kernel, for programs: keys are added within a schema, never removed. All times in seconds."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from kernel_forge.domain.finding import Finding
from kernel_forge.domain.outcome import Verdict
from kernel_forge.domain.tuning import CaseChoice, Contender, KernelTuning, Ratio, TunedTrial
from kernel_forge.views.report_json import plain, verdict_json
from kernel_forge.views.timing import measurement_json
from kernel_forge.views.words import caveat

FindingsOf = Callable[[Verdict], tuple[Finding, ...]]


def tuning_json(tuning: KernelTuning, findings_of: FindingsOf = lambda _: ()) -> dict[str, Any]:
    """One tuning as JSON data."""
    return {
        "kernel": tuning.kernel,
        "path": tuning.path,
        "device": tuning.device,
        "basis": tuning.basis,
        "caveat": caveat(tuning.basis),
        "improved": tuning.is_improved,
        "winner": _contender(tuning.winner),
        "baseline": None if tuning.baseline is None else _contender(tuning.baseline),
        "finalists": [_contender(c) for c in tuning.finalists],
        "rejected": [verdict_json(v, findings_of(v)) for v in tuning.rejected],
        "cases": [dict(sizes) for sizes in tuning.cases],
        "choices": [_choice(c) for c in tuning.choices],
        "space": {
            "combinations": tuning.space.combinations,
            "valid": tuning.space.valid,
            "parameters": {k: list(v) for k, v in tuning.space.parameters.items()},
        },
        "sampler": tuning.sampler,
        "seed": tuning.seed,
        "budget": asdict(tuning.budget),
        "ended": tuning.ended,
        "trials": [_trial(t) for t in tuning.trials],
        "failed": tuning.failed,
        "resumed": tuning.resumed,
        "convergence": list(tuning.convergence),
        "attained": None if tuning.attained is None else asdict(tuning.attained),
        "occupancy": None if tuning.occupancy is None else asdict(tuning.occupancy),
        "verdict": verdict_json(tuning.verdict, findings_of(tuning.verdict)),
        "run": tuning.run,
        "seconds": tuning.seconds,
        "search_seconds": tuning.search_seconds,
        "notes": list(tuning.notes),
    }


def _trial(trial: TunedTrial) -> dict[str, Any]:
    place = trial.place
    return {
        "configuration": dict(trial.configuration),
        "seconds": None if trial.seconds is None else list(trial.seconds),
        "value": trial.value,
        "failure": trial.failure,
        "early": trial.early,
        "reason": trial.reason,
        "wrong": trial.is_wrong,
        "place": None if place is None else {"path": place.path, "line": place.range.start.line + 1},
        "case": None if trial.case is None else dict(trial.case),
    }


def _contender(contender: Contender) -> dict[str, Any]:
    return {
        "configuration": dict(contender.configuration),
        "seconds": contender.seconds,
        "times": [measurement_json(t) for t in contender.times],
        "speedup": _ratio(contender.speedup),
        "joules": list(contender.joules),
    }


def _choice(choice: CaseChoice) -> dict[str, Any]:
    return {
        "sizes": dict(choice.sizes),
        "configuration": dict(choice.configuration),
        "seconds": choice.seconds,
        "speedup": _ratio(choice.speedup),
    }


def _ratio(ratio: Ratio | None) -> dict[str, Any] | None:
    if ratio is None:
        return None
    interval = [plain(ratio.low), plain(ratio.high)] if ratio.has_interval else None
    return {"value": plain(ratio.value), "interval": interval}
