"""Kernel Tuner on one kernel: random configurations, and how long they took.

usage: kernel_tuner_trials.py < JOB     (in a Python with kernel-tuner and CuPy or PyCUDA)
JOB is JSON: source, kernel, problem, grid_div (x, y), arguments (a list of `{"shape": [...]}` for float32 buffers and
`{"value": n}` for int32), parameters, restrictions, trials, seconds. Prints JSON; times are in seconds.
"""

import contextlib
import json
import os
import sys
import tempfile
import time


def main() -> None:
    job = json.load(sys.stdin)
    os.environ["CUPY_CACHE_DIR"] = tempfile.mkdtemp(prefix="kernel-tuner-")  # nothing is compiled beforehand
    import numpy as np
    from kernel_tuner import tune_kernel

    rng = np.random.default_rng(1)
    arguments = [
        np.int32(a["value"]) if "value" in a else rng.standard_normal(a["shape"], dtype=np.float32)
        for a in job["arguments"]
    ]
    language = _language()
    begin = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):
        results, _ = tune_kernel(
            job["kernel"],
            job["source"],
            tuple(job["problem"]),
            arguments,
            job["parameters"],
            grid_div_x=job["grid_div"][0],
            grid_div_y=job["grid_div"][1],
            block_size_names=["TX", "TY"],
            restrictions=job["restrictions"],
            lang=language,
            strategy="random_sample",
            strategy_options={"max_fevals": job["trials"], "time_limit": job["seconds"]},
            seed=1,
            quiet=True,
        )
    seconds = time.perf_counter() - begin
    results = [r for r in results if r is not None]  # where the time was up
    good = [r for r in results if isinstance(r.get("time"), int | float) and r["time"] < 1e15]
    best = min(good, key=lambda r: r["time"], default=None)
    made = {
        "backend": language,
        "trials": len(results),
        "failed": len(results) - len(good),
        "seconds": seconds,
        "best": None if best is None else {"seconds": best["time"] * 1e-3, **{p: best[p] for p in job["parameters"]}},
    }
    print(json.dumps(made, default=int))


def _language() -> str:
    """Kernel Tuner's backend that can be had; CuPy compiles within the process, which is the faster of the two."""
    try:
        import cupy  # noqa: F401

        return "CUPY"
    except ImportError:
        return "CUDA"


if __name__ == "__main__":
    main()
