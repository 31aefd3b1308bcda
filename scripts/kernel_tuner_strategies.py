"""One strategy of Kernel Tuner on one recorded space, in its simulation mode; for ``measure_search.py``.

usage: kernel_tuner_strategies.py FILE STRATEGY BUDGETS REPEATS SEED     (in a Python with kernel-tuner)
Prints the best time per budget and repeat. The recorded configurations are given to Kernel Tuner as its search space,
since the files do not have the restrictions themselves. Every strategy is run anew for each budget, as some plan by it.
"""

import contextlib
import io
import json
import random
import sys
import tempfile
from pathlib import Path

import numpy as np
from kernel_tuner import interface, util
from kernel_tuner.searchspace import Searchspace

from kernel_forge.devices.replay import read_recorded_space


def main() -> None:
    file, strategy, budgets, repeats, seed = sys.argv[1:]
    recorded = read_recorded_space(Path(file))
    values = {name: list(listed) for name, listed in recorded.parameters}
    cache = {}
    for trial in recorded.trials:
        record = dict(zip(values, trial.configuration, strict=True))
        record["time"] = trial.time if trial.time is not None else util.RuntimeFailedConfig()
        if trial.time is None:
            record["__error__"] = util.RuntimeFailedConfig()
        record.update(compile_time=0, verification_time=0, benchmark_time=0)
        cache[",".join(map(str, trial.configuration))] = record
    util.process_cache = lambda *a, **k: cache
    util.close_cache = lambda *a, **k: None
    interface.Searchspace = lambda *a, **k: Searchspace(
        None, None, None, from_cache={"tune_params": values, "cache": cache}
    )
    best = {
        budget: [once(strategy, values, cache, int(budget), int(seed) + k) for k in range(int(repeats))]
        for budget in budgets.split(",")
    }
    print(json.dumps({"best": best}))


def once(strategy: str, values: dict, cache: dict, budget: int, seed: int) -> float | None:
    random.seed(seed)
    np.random.seed(seed)
    options = {"max_fevals": budget}
    if strategy == "diff_evo":  # its default population is larger than most budgets
        options.update(popsize=20, popsize_times_dimensions=False)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        results, _ = interface.tune_kernel(
            "k", "__global__ void k() {}", (1, 1), [], {k: list(v) for k, v in values.items()}, strategy=strategy,
            strategy_options=options, simulation_mode=True, cache=f"{folder}/cache.json", quiet=True, lang="CUDA",
        )  # fmt: skip
    order = list(dict.fromkeys(",".join(str(r[n]) for n in values) for r in results if r))
    times = [cache[key]["time"] for key in order[:budget] if key in cache]
    return min((t for t in times if isinstance(t, float)), default=None)


main()
