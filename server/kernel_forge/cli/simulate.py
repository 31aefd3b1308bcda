"""``kernel-forge simulate``."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np

from kernel_forge.cli.options import known_sampler
from kernel_forge.cli.output import may_be_closed
from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.recorded_space import RecordedSpace, Value
from kernel_forge.search import ReplayedSpace, Simulation
from kernel_forge.views.words import printable

MAX_SEED = 2**32 - 1
"""The largest that every sampler takes (Optuna's seeds have 32 bits)."""


def simulate_command(options: argparse.Namespace, read_recorded_space: Callable[[Path], RecordedSpace]) -> int:
    """Search a recorded space several times and say how near to its optimum; always 0."""
    known_sampler(options.sampler)
    if options.seed + options.repeats - 1 > MAX_SEED:
        raise UsageError(f"--seed {options.seed} with --repeats {options.repeats}: the last seed is above {MAX_SEED}")
    recorded = read_recorded_space(Path(options.space))
    replayed = ReplayedSpace(recorded)
    simulation = replayed.simulate(options.sampler, options.budget, options.repeats, options.seed)
    report = _report(options, recorded, replayed, simulation)
    with may_be_closed():
        print(json.dumps(report, indent=2, allow_nan=False) if options.json else _text(report))
    return 0


def _report(
    options: argparse.Namespace, recorded: RecordedSpace, replayed: ReplayedSpace, simulation: Simulation
) -> dict[str, object]:
    fractions = simulation.fractions_after(options.budget)
    best = min((t for r in simulation.replays if (t := r.best_after(options.budget)) is not None), default=None)
    return {
        "schema": 1,
        "basis": "replayed",
        "space": options.space,
        "kernel": recorded.kernel,
        "device": recorded.device,
        "parameters": len(replayed.space.parameters),
        "configurations": replayed.space.size,
        "failing_configurations": replayed.failing,
        "optimum_ms": simulation.optimum,
        "optimum_configuration": _configuration(recorded, simulation.optimum),
        "sampler": options.sampler,
        "budget": options.budget,
        "repeats": options.repeats,
        "seed": options.seed,
        "mean_fraction_of_optimum": float(np.mean(fractions)),
        "p10_fraction_of_optimum": float(np.percentile(fractions, 10)),
        "fractions_of_optimum": fractions,
        "evaluations": [len(r.times) for r in simulation.replays],
        "failed_evaluations": [sum(t is None for t in r.times) for r in simulation.replays],
        "best_ms": [r.best_after(options.budget) for r in simulation.replays],
        "best_configuration": None if best is None else _configuration(recorded, best),
        "overhead_ms_per_evaluation": simulation.overhead,
    }


def _configuration(recorded: RecordedSpace, time: float) -> dict[str, Value]:
    """The first configuration on record that takes ``time``."""
    found = next(trial.configuration for trial in recorded.trials if trial.time == time)
    return dict(zip((name for name, _ in recorded.parameters), found, strict=True))


def _text(report: dict[str, object]) -> str:
    best = report["best_configuration"]
    times = [time for time in cast("list[float | None]", report["best_ms"]) if time is not None]
    found = (
        "none of the evaluations has a time"
        if not isinstance(best, dict) or not times
        else printable(f"the best found: {', '.join(f'{k} = {v}' for k, v in best.items())}, {min(times):.4g} ms")
    )
    where = printable(f"{report['kernel'] or 'kernel'} on {report['device'] or 'an unnamed device'}")
    return (
        f"{where}, replayed: {report['configurations']:,} valid configurations "
        f"({report['failing_configurations']:,} fail), optimum {report['optimum_ms']:.4g} ms\n"
        f"{report['sampler']}, {report['budget']} evaluations, {report['repeats']} searches: "
        f"optimum/found {report['mean_fraction_of_optimum']:.3f} on average, "
        f"{report['p10_fraction_of_optimum']:.3f} at the 10th percentile; "
        f"own overhead {report['overhead_ms_per_evaluation']:.2f} ms per evaluation\n"
        f"{found}{', the optimum' if times and min(times) == report['optimum_ms'] else ''}"
    )
