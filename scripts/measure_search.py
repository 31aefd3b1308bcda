"""``scripts/bench search SPACES``: how near samplers come to the optimum of recorded spaces, replayed.

With ``--kernel-tuner PYTHON`` (a Python that has kernel-tuner, a package for this measurement only) its strategies run
on the same spaces in its simulation mode; with ``--optuna``, Optuna's samplers (``optuna_samplers.py``). Prints a
table, and with --json writes the numbers after every space. The default sampler and Kernel Tuner come first.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from optuna_samplers import NAMES, OptunaOnRecorded

from kernel_forge.devices.replay import read_recorded_space
from kernel_forge.domain.recorded_space import RecordedSpace
from kernel_forge.search import DEFAULT, SAMPLERS, ReplayedSpace

STRATEGIES = (
    "diff_evo,hybrid_vndx,genetic_algorithm,pso,adaptive_tabu_greywolf,bayes_opt,firefly_algorithm,random_sample,"
    "simulated_annealing,dual_annealing,basinhopping,greedy_ils,greedy_mls,mls"
)


Row = dict[str, object]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("spaces", nargs="+", type=Path, help="files, or folders of them")
    parser.add_argument("--samplers", default=",".join(s for s in SAMPLERS if s != "exhaustive"))
    parser.add_argument("--budgets", default="50,100,200")
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kernel-tuner", metavar="PYTHON")
    parser.add_argument("--strategies", default=STRATEGIES)
    parser.add_argument("--optuna", nargs="?", const=",".join(NAMES), default="", metavar="SAMPLERS")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    budgets = [int(b) for b in options.budgets.split(",")]
    files = [f for s in options.spaces for f in (sorted(s.glob("*.json*")) if s.is_dir() else [s])]
    names = [n for n in options.samplers.split(",") if n]
    rows: list[Row] = []
    for first in (True, False):
        for file in files:
            recorded = read_recorded_space(file)
            mine = [n for n in names if (n == DEFAULT) == first]
            for found in measured(file, recorded, mine, first, budgets, options):
                rows += found
                show(found, budgets)
            if options.json:
                Path(options.json).write_text(json.dumps(rows, indent=2))
    for file in files:
        print(file.name)
        show([r for r in rows if r["space"] == file.name], budgets)
    print("mean over all spaces")
    show(rows, budgets)
    judge(rows, budgets)


def measured(
    file: Path, recorded: RecordedSpace, names: list[str], first: bool, budgets: list[int], options: argparse.Namespace
) -> Iterator[list[Row]]:
    replayed = ReplayedSpace(recorded)
    print(f"{file.name}: {replayed.space.size} configurations, {replayed.failing} fail", flush=True)
    for name in names:
        made = replayed.simulate(name, max(budgets), options.repeats, options.seed)
        yield [row(file, name, b, made.fractions_after(b), made.overhead) for b in budgets]
    if first and options.kernel_tuner:
        for strategy in options.strategies.split(","):
            yield kernel_tuner(file, strategy, replayed.optimum, options)
    if not first and options.optuna:
        theirs = OptunaOnRecorded(recorded)
        for name in options.optuna.split(","):
            began = time.perf_counter()
            best = [theirs.best(name, budgets, options.seed + k) for k in range(options.repeats)]
            spent = 1e3 * (time.perf_counter() - began) / options.repeats / max(budgets)
            fractions = {b: [replayed.optimum / found if (found := one[b]) else 0.0 for one in best] for b in budgets}
            yield [row(file, f"optuna/{name}", b, fractions[b], spent) for b in budgets]


def row(file: Path, name: str, budget: int, fractions: list[float], overhead: float) -> Row:
    return {
        "space": file.name,
        "sampler": name,
        "budget": budget,
        "mean_fraction_of_optimum": float(np.mean(fractions)),
        "p10_fraction_of_optimum": float(np.percentile(fractions, 10)),
        "overhead_ms_per_evaluation": overhead,
    }


def kernel_tuner(file: Path, strategy: str, optimum: float, options: argparse.Namespace) -> list[Row]:
    script = Path(__file__).with_name("kernel_tuner_strategies.py")
    server = str(Path(__file__).resolve().parent.parent / "server")
    done = subprocess.run(
        [
            options.kernel_tuner,
            str(script),
            str(file),
            strategy,
            options.budgets,
            str(options.repeats),
            str(options.seed),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": server},
    )
    if done.returncode:
        print(f"{strategy}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return []
    by_budget = json.loads(done.stdout.splitlines()[-1])["best"]
    fractions = {int(b): [optimum / found if found else 0.0 for found in best] for b, best in by_budget.items()}
    return [row(file, f"kernel_tuner/{strategy}", b, each, float("nan")) for b, each in fractions.items()]


def mean_of(rows: Iterable[Row], key: str, **having: object) -> float:
    return float(np.mean([r[key] for r in rows if all(r[k] == v for k, v in having.items())]))  # type: ignore[misc]


def show(rows: list[Row], budgets: list[int]) -> None:
    for name in dict.fromkeys(str(r["sampler"]) for r in rows):
        both = [
            [mean_of(rows, f"{k}_fraction_of_optimum", sampler=name, budget=b) for k in ("mean", "p10")]
            for b in budgets
        ]
        cells = [f"{b}: {mean:.3f}/{low:.3f}" for b, (mean, low) in zip(budgets, both, strict=True)]
        overhead = np.median([r["overhead_ms_per_evaluation"] for r in rows if r["sampler"] == name])  # type: ignore[type-var]
        print(f"  {name:36s}{'  '.join(cells)}  {overhead:.2f} ms", flush=True)


def judge(rows: list[Row], budgets: list[int]) -> None:
    """The default against every strategy of others: its margin over the best on average, and its worst space."""
    key = "mean_fraction_of_optimum"
    others = [n for n in dict.fromkeys(str(r["sampler"]) for r in rows) if "/" in n]
    if not others or not any(r["sampler"] == DEFAULT for r in rows):
        return
    for budget in budgets:
        own = mean_of(rows, key, sampler=DEFAULT, budget=budget)
        best = max(others, key=lambda n: mean_of(rows, key, sampler=n, budget=budget))
        theirs = mean_of(rows, key, sampler=best, budget=budget)
        print(f"{budget}: {DEFAULT} {own:.3f}, best other {best} {theirs:.3f}, margin {own - theirs:+.3f}")
        for space in dict.fromkeys(r["space"] for r in rows):
            here = {n: mean_of(rows, key, sampler=n, budget=budget, space=space) for n in [DEFAULT, *others]}
            best = max(others, key=lambda n: here[n])
            print(f"    {here[DEFAULT] - here[best]:+.3f} against {best} on {space}")


main()
