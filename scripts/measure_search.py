"""``scripts/bench search SPACES``: how near samplers come to the optimum of recorded spaces, replayed.

With ``--kernel-tuner PYTHON`` (a Python that has kernel-tuner, a package for this measurement only) its strategies run on the
same spaces in its simulation mode. Prints a table; with --json, the numbers.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from kernel_forge.devices.replay import read_recorded_space
from kernel_forge.search import SAMPLERS, ReplayedSpace

STRATEGIES = (
    "diff_evo,hybrid_vndx,genetic_algorithm,pso,adaptive_tabu_greywolf,bayes_opt,firefly_algorithm,random_sample"
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("spaces", nargs="+", type=Path, help="files, or folders of them")
    parser.add_argument("--samplers", default=",".join(s for s in SAMPLERS if s != "exhaustive"))
    parser.add_argument("--budgets", default="50,100,200")
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kernel-tuner", metavar="PYTHON")
    parser.add_argument("--strategies", default=STRATEGIES)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    budgets = [int(b) for b in options.budgets.split(",")]
    files = [f for s in options.spaces for f in (sorted(s.glob("*.json*")) if s.is_dir() else [s])]
    rows = []
    for file in files:
        replayed = ReplayedSpace(read_recorded_space(file))
        for name in options.samplers.split(","):
            made = replayed.simulate(name, max(budgets), options.repeats, options.seed)
            rows += [row(file, name, b, made.fractions_after(b), made.overhead) for b in budgets]
        if options.kernel_tuner:
            rows += kernel_tuner(file, replayed.optimum, budgets, options)
        show([r for r in rows if r["space"] == file.name], budgets)
    print("mean over all spaces")
    show(rows, budgets)
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=2))


def row(file: Path, name: str, budget: int, fractions: list[float], overhead: float) -> dict[str, object]:
    return {
        "space": file.name,
        "sampler": name,
        "budget": budget,
        "mean_fraction_of_optimum": float(np.mean(fractions)),
        "p10_fraction_of_optimum": float(np.percentile(fractions, 10)),
        "overhead_ms_per_evaluation": overhead,
    }


def kernel_tuner(
    file: Path, optimum: float, budgets: list[int], options: argparse.Namespace
) -> list[dict[str, object]]:
    found = []
    script = Path(__file__).with_name("kernel_tuner_strategies.py")
    server = str(Path(__file__).resolve().parent.parent / "server")
    for strategy in options.strategies.split(","):
        words = [strategy, options.budgets, str(options.repeats), str(options.seed)]
        done = subprocess.run(
            [options.kernel_tuner, str(script), str(file), *words],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": server},
        )
        if done.returncode:
            print(f"{strategy}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            continue
        for budget, best in json.loads(done.stdout.splitlines()[-1])["best"].items():
            fractions = [optimum / b if b else 0.0 for b in best]
            found.append(row(file, f"kernel_tuner/{strategy}", int(budget), fractions, float("nan")))
    return found


def show(rows: list[dict[str, object]], budgets: list[int]) -> None:
    names = list(dict.fromkeys(str(r["sampler"]) for r in rows))
    if len({r["space"] for r in rows}) == 1:
        print(rows[0]["space"])
    for name in names:
        cells = []
        for budget in budgets:
            mine = [r for r in rows if r["sampler"] == name and r["budget"] == budget]
            both = [np.mean([r[k] for r in mine]) for k in ("mean_fraction_of_optimum", "p10_fraction_of_optimum")]  # type: ignore[misc]
            cells.append("{}: {:.3f}/{:.3f}".format(budget, *both))
        overhead = np.median([r["overhead_ms_per_evaluation"] for r in rows if r["sampler"] == name])  # type: ignore[type-var]
        print(f"  {name:36s}{'  '.join(cells)}  {overhead:.2f} ms", flush=True)


main()
