"""How good and how fast is tuning on this GPU? ``scripts/check-gpu tuning``.

For each kernel of ``scripts/tuning_kernels``: our default search of 100 trials, 1,000 random trials of ours, and Kernel
Tuner's random sample on the same source, space and sizes (where kernel-tuner and CuPy or PyCUDA are installed). The
best of all are timed against each other in one call. Prints a table; with --json, the numbers.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_forge import wiring
from kernel_forge.devices.cuda import CudaDevice
from kernel_forge.domain.errors import KernelForgeError
from kernel_forge.domain.event import Progress
from kernel_forge.domain.measurement import Timed, TimingPlan, Timings
from kernel_forge.domain.outcome import Passed
from kernel_forge.domain.spec import BufferArg, KernelSpec
from kernel_forge.domain.tuning import Budget, KernelTuning
from kernel_forge.jobs.requests import TuneRequest
from kernel_forge.jobs.tune.job import tune_file
from kernel_forge.ports import Artifact, Device, Trial
from kernel_forge.source import SourceFile, parse
from kernel_forge.spec import BoundCase, bind, read_specs
from kernel_forge.verify.compiling import compile_case
from kernel_forge.verify.gate import Gate

FOLDER = Path(__file__).resolve().parent / "tuning_kernels"
SEED = 1
FINAL_PLAN = TimingPlan(budget=4.0, interval=0.003, min_samples=40)


@dataclass(frozen=True)
class Kernel:
    """A kernel, the sizes it is tuned for, and how Kernel Tuner is told its grid."""

    name: str
    sizes: Mapping[str, int]
    problem: tuple[str, str]
    grid_div: tuple[tuple[str, ...], tuple[str, ...]]


KERNELS = (
    Kernel("matmul", {"M": 2048, "N": 2048, "K": 1024}, ("N", "M"), (("TX", "WX"), ("TY", "WY"))),
    Kernel("convolution", {"height": 4096, "width": 4096}, ("width", "height"), (("TX", "WX"), ("TY", "WY"))),
    Kernel("softmax", {"rows": 4096, "cols": 4096}, ("1", "rows"), ((), ("TY",))),
)


@dataclass
class Subject:
    """A kernel read from its file."""

    kernel: Kernel
    source: SourceFile
    spec: KernelSpec
    sizes: Mapping[str, int]

    @classmethod
    def read(cls, kernel: Kernel, *, small: bool) -> "Subject":
        path = FOLDER / f"{kernel.name}.cu"
        source = parse(path.read_text(encoding="utf-8"), str(path))
        reading = read_specs(source, None)
        if reading.problems or len(reading.specs) != 1:
            sys.exit(f"{path}: {reading.problems or 'not one spec'}")
        spec = reading.specs[0]
        return cls(kernel, source, spec, spec.cases[0] if small else kernel.sizes)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=100, help="of our search, and of Kernel Tuner's")
    parser.add_argument("--random", type=int, default=1000, help="random trials for the best to compare with")
    parser.add_argument("--limit", type=float, default=520.0, help="seconds in all; random trials are cut to it")
    parser.add_argument("--kernel", action="append", choices=[k.name for k in KERNELS])
    parser.add_argument("--kernel-tuner", default=sys.executable, metavar="PYTHON", help="a Python that has it")
    parser.add_argument("--kernel-tuner-limit", type=float, default=40.0, metavar="SECONDS", help="per kernel")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="at the first case of the spec")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    device = wiring.device(options.device)
    if device.info().unavailable:
        sys.exit(f"nothing was measured: {device.info().unavailable}")
    device.prepare()
    device.peaks()  # measured once per machine, not by the first search
    deadline = time.monotonic() + options.limit
    wanted = options.kernel or [k.name for k in KERNELS]
    subjects = [Subject.read(k, small=options.small) for k in KERNELS if k.name in wanted]
    table: dict[str, Any] = {"device": device.info().basis, "kernels": {}}
    for number, subject in enumerate(subjects):
        left = (deadline - time.monotonic()) / (len(subjects) - number)
        table["kernels"][subject.kernel.name] = measure(subject, device, options, time.monotonic() + left)
        if options.json:  # after each: what was measured stays where the next one ends badly
            Path(options.json).write_text(json.dumps(table, indent=2))
    if isinstance(device, CudaDevice):
        device.close()


def measure(subject: Subject, device: Device, options: argparse.Namespace, deadline: float) -> dict[str, Any]:
    """Everything about one kernel; the random trials have what is left until ``deadline``."""
    name = subject.kernel.name
    ours = search(subject, device, "portfolio", options.trials, None)
    print(f"{name}: {ours['valid']} valid configurations of {ours['combinations']}")
    show(name, f"ours, {ours['trials']} trials", ours)
    theirs = kernel_tuner(subject, options)
    if "trials" in theirs:
        show(name, f"Kernel Tuner ({theirs['backend']}), {theirs['trials']} random", theirs)
    else:
        print(f"{name}: Kernel Tuner was not run: {theirs['missing']}")
    left = max(20.0, deadline - time.monotonic() - 15.0)
    chance = search(subject, device, "random", options.random, left)
    show(name, f"random, {chance['trials']} trials", chance)
    best = {"ours": ours["best"], "random": chance["best"]}
    if theirs.get("best"):
        best["kernel tuner"] = {p: v for p, v in theirs["best"].items() if p != "seconds"}
    seconds = timed_together(subject, device, {k: v for k, v in best.items() if v is not None})
    made: dict[str, Any] = {"ours": ours, "random": chance, "kernel_tuner": theirs, "seconds": seconds}
    if {"ours", "random"} <= seconds.keys():
        made["best_over_random"] = seconds["random"] / seconds["ours"]
        print(
            f"{name}: best of ours {seconds['ours'] * 1e6:.2f} us, of random {seconds['random'] * 1e6:.2f} us: "
            f"{100 * made['best_over_random']:.1f} % of the random best's speed"
        )
    if "kernel tuner" in seconds:
        print(f"{name}: best of Kernel Tuner's {seconds['kernel tuner'] * 1e6:.2f} us")
    if theirs.get("trials"):
        made["time_per_trial"] = ours["seconds_per_trial"] / theirs["seconds_per_trial"]
        print(f"{name}: wall time per trial is {made['time_per_trial']:.3f} of Kernel Tuner's")
    return made


def search(subject: Subject, device: Device, sampler: str, trials: int, seconds: float | None) -> dict[str, Any]:
    """One search of ours. ``seconds_per_trial`` is until the last trial was told; ``seconds`` with the final timing and
    the verification of the winner."""
    begin = time.monotonic()
    last = [begin]

    def report(event: object) -> None:
        if isinstance(event, Progress) and event.search is not None:
            last[0] = time.monotonic()

    request = TuneRequest(
        subject.source.path,
        subject.source.text,
        device=device.info().name,
        seed=SEED,
        time_limit=60.0,
        cases=(dict(subject.sizes),),
        budget=Budget(trials, seconds, None),
        sampler=sampler,
        fresh=True,
    )
    try:
        (result,) = tune_file(request, device, report).results
    except KernelForgeError as error:
        sys.exit(f"{subject.kernel.name}: {error}")
    if not isinstance(result, KernelTuning):
        sys.exit(f"{subject.kernel.name}: {result.outcome}")
    count = max(1, len(result.trials))
    fastest = min((t for t in result.trials if t.value is not None), key=lambda t: t.value or 0.0)
    failures: dict[str, int] = {}
    for trial in result.trials:
        if trial.failure is not None:
            failures[trial.failure[:60]] = failures.get(trial.failure[:60], 0) + 1
    return {
        "sampler": sampler,
        "combinations": result.space.combinations,
        "valid": result.space.valid,
        "trials": len(result.trials),
        "failures": failures,
        "early": sum(t.early for t in result.trials),
        "ended": result.ended,
        "seconds": time.monotonic() - begin,
        "search_seconds": last[0] - begin,
        "seconds_per_trial": (last[0] - begin) / count,
        "best": dict(result.winner.configuration),
        "best_seconds": result.winner.seconds,
        "best_trial_seconds": fastest.value,
        "verified": isinstance(result.verdict.outcome, Passed),
        "rejected": [str(v.outcome) for v in result.rejected],
        "convergence": list(result.convergence),
        "notes": list(result.notes),
    }


def kernel_tuner(subject: Subject, options: argparse.Namespace) -> dict[str, Any]:
    """Kernel Tuner's random sample in a process of its own; ``missing`` says why there is none."""
    spec, kernel = subject.spec, subject.kernel
    bound = bind(spec, subject.sizes, spec.default_configuration)
    assert isinstance(bound, BoundCase), bound
    job = {
        "source": subject.source.text,
        "kernel": spec.kernel,
        "problem": [subject.sizes[p] if p in subject.sizes else int(p) for p in kernel.problem],
        "grid_div": [list(d) for d in kernel.grid_div],
        "arguments": [
            {"shape": list(bound.shapes[a.name])} if isinstance(a, BufferArg) else {"value": int(bound.scalars[a.name])}
            for a in spec.args
        ],
        "parameters": {t.name: list(t.values) for t in spec.tunables},
        # Kernel Tuner rules out too many threads itself.
        "restrictions": [e.text for e in spec.tune_where],
        "trials": options.trials,
        "seconds": options.kernel_tuner_limit,
    }
    program = [options.kernel_tuner, str(Path(__file__).with_name("kernel_tuner_trials.py"))]
    limit = options.kernel_tuner_limit + 60.0
    try:
        done = subprocess.run(
            program, input=json.dumps(job), capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return {"missing": f"it did not end within {limit:g} s"}
    if done.returncode != 0:
        return {"missing": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"}
    made: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    made["seconds_per_trial"] = made["seconds"] / max(1, made["trials"])
    return made


def timed_together(
    subject: Subject, device: Device, configurations: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """Seconds of each configuration, all timed against each other in one call."""
    gate = Gate(subject.spec, device, seed=SEED, deadline=time.monotonic() + 120.0)
    trials = []
    for configuration in configurations.values():
        bound = bind(subject.spec, subject.sizes, configuration)
        assert isinstance(bound, BoundCase), bound
        artifact = compile_case(subject.spec, subject.source, device, bound, (), {}, time.monotonic() + 60.0)
        inputs = gate.inputs(bound)
        if not isinstance(artifact, Artifact) or not isinstance(inputs, Mapping):
            sys.exit(f"{subject.kernel.name}: {artifact} {inputs}")
        trials.append(Trial(artifact, gate.request(bound, inputs, 10.0)))
    timings = device.time(trials, FINAL_PLAN)
    if not isinstance(timings, Timings):
        sys.exit(f"{subject.kernel.name}: {timings.reason}")
    results = zip(configurations, timings.results, strict=True)
    return {name: r.measurement.seconds for name, r in results if isinstance(r, Timed)}


def show(name: str, what: str, found: Mapping[str, Any]) -> None:
    """One line about a search."""
    per_trial = f"{1e3 * found['seconds_per_trial']:8.1f} ms per trial"
    best = found.get("best_seconds") or (found.get("best") or {}).get("seconds")
    reached = "no time" if best is None else f"best {best * 1e6:9.2f} us"
    failed = sum(found["failures"].values()) if "failures" in found else found["failed"]
    print(f"{name}: {what:40} {per_trial}  {reached}  {failed} failed")


if __name__ == "__main__":
    main()
