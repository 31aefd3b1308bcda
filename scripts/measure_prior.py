"""``python scripts/measure_prior.py SPACES``: what the prior of a search is worth on recorded spaces, replayed.

For every space: the mean optimum/found after some evaluations of the default sampler, alone and after ``--count``
configurations of the prior; and the rank correlation of the prior's weights with the measured speed. Then, for kernels
that were recorded on two GPUs: the correlation on each with its own facts and with the other's, and whether weights
shift from one GPU to the other as the speeds do.
No default configuration takes part, as recorded spaces have none.
"""

import argparse
import json
import time
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from recorded_kernels import GPUS, described
from scipy.stats import spearmanr

from kernel_forge.devices.replay import read_recorded_space
from kernel_forge.domain.hardware import GpuFacts
from kernel_forge.domain.recorded_space import RecordedSpace
from kernel_forge.jobs.tune.prospects import Prospects
from kernel_forge.search import DEFAULT, SAMPLERS, ReplayedSpace, Search

_CONSIDERED = 2048


@dataclass
class Case:
    kernel: str
    gpu: str
    recorded: RecordedSpace

    def __post_init__(self) -> None:
        self.replayed = ReplayedSpace(self.recorded)
        self.space = self.replayed.space
        self.spec, self.sizes = described(self.kernel, self.recorded)
        self.times = {t.configuration: t.time for t in self.recorded.trials}
        self.all = np.arange(self.space.size)

    def time_of(self, configuration: dict[str, object]) -> float | None:
        return self.times[tuple(configuration[p.name] for p in self.space.parameters)]  # type: ignore[misc]

    def speeds(self) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        found = [self.time_of(self.space.configuration(int(i))) for i in self.all]
        return np.array([0.0 if t is None else self.replayed.optimum / t for t in found])

    def weights(self, gpu: GpuFacts) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        return Prospects.of(self.space, self.spec, self.sizes, gpu, self.all).weights

    def first(self, count: int, seed: int) -> list[dict[str, object]]:
        considered = self.space.sample(_CONSIDERED, np.random.default_rng(seed))
        prospects = Prospects.of(self.space, self.spec, self.sizes, GPUS[self.gpu], considered)
        return [dict(self.space.configuration(int(considered[r]))) for r in prospects.choose(self.space, count, set())]

    def search(self, sampler: str, count: int, evaluations: list[int], seed: int) -> list[float]:
        first = self.first(count, seed) if count else []
        search = Search(self.space, SAMPLERS[sampler](self.space, seed), first=first)  # type: ignore[arg-type]
        best, found = 0.0, []
        for _ in range(max(evaluations)):
            proposal = search.ask()
            if proposal is None:
                break
            measured = self.time_of(dict(proposal.configuration))
            if measured is None:
                search.tell_failed(proposal, "failed")
            else:
                search.tell(proposal, measured)
                best = max(best, self.replayed.optimum / measured)
            found.append(best)
        return [found[min(n, len(found)) - 1] for n in evaluations]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("spaces", nargs="+", type=Path, help="files, or folders of them")
    parser.add_argument("--sampler", default=DEFAULT)
    parser.add_argument("--counts", default="0,5", help="how many configurations of the prior; 0 is without")
    parser.add_argument("--evaluations", default="1,5,10,20,50,100")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    evaluations = [int(n) for n in options.evaluations.split(",")]
    counts = [int(n) for n in options.counts.split(",")]
    files = [f for s in options.spaces for f in (sorted(s.glob("*.json*")) if s.is_dir() else [s])]
    cases, rows = [], []
    for file in files:
        kernel, _, gpu = file.name.partition(".")[0].partition("-")
        case = Case(kernel, gpu, read_recorded_space(file))
        cases.append(case)
        began = time.perf_counter()
        case.first(5, 0)
        spent = 1e3 * (time.perf_counter() - began)
        rho = spearmanr(case.weights(GPUS[gpu]), case.speeds())[0]
        print(f"{file.name}: rank correlation {rho:+.2f}, {spent:.0f} ms")
        for count in counts:
            runs = [case.search(options.sampler, count, evaluations, seed) for seed in range(options.repeats)]
            rows.append({"space": file.name, "count": count, "fractions": np.mean(runs, 0).tolist()})
            show(f"  first {count}", evaluations, rows[-1]["fractions"])
    print("mean over all spaces")
    for count in counts:
        mine = np.mean([r["fractions"] for r in rows if r["count"] == count], 0)
        show(f"  first {count}", evaluations, mine.tolist())
    swapped(cases)
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=2))


def show(what: str, evaluations: list[int], fractions: list[float]) -> None:
    cells = "  ".join(f"{n}: {f:.3f}" for n, f in zip(evaluations, fractions, strict=True))
    print(f"{what:12s}{cells}", flush=True)


def swapped(cases: list[Case]) -> None:
    print("kernels on two GPUs: rank correlations over the configurations that work on both")
    for one, other in combinations(cases, 2):
        if one.kernel != other.kernel:
            continue
        mine, theirs = one.speeds(), np.array([other_speed(other, one, int(i)) for i in one.all])
        both = (mine > 0) & (theirs > 0)
        here, there = one.weights(GPUS[one.gpu])[both], one.weights(GPUS[other.gpu])[both]
        mine, theirs = mine[both], theirs[both]
        print(f"  {one.kernel}, {one.gpu} and {other.gpu}, {both.sum()} configurations")
        print(f"    measured speeds {rank(mine, theirs):.3f}, weights {rank(here, there):.3f}")
        for gpu, speeds, own, foreign in ((one.gpu, mine, here, there), (other.gpu, theirs, there, here)):
            print(f"    on {gpu}: own facts {rank(own, speeds):+.3f}, the other's {rank(foreign, speeds):+.3f}")
        shift = rank(np.log(here / there), np.log(mine / theirs))
        print(f"    what the weights shift from one to the other, with what the speeds do: {shift:+.3f}")


def other_speed(other: Case, one: Case, index: int) -> float:
    found = other.times.get(tuple(one.space.configuration(index).values()))
    return 0.0 if found is None else other.replayed.optimum / found


def rank(a: "np.ndarray[tuple[int], np.dtype[np.float64]]", b: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    return float(spearmanr(a, b)[0])


main()
