"""Trials on one device: groups, lost contexts, and the order of results."""

import time
from collections.abc import Sequence

from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.measurement import TimingPlan, Timings
from kernel_forge.domain.outcome import CompileFailed, MemoryFault, Unavailable
from kernel_forge.jobs.compile_database import CompileOptions
from kernel_forge.jobs.tune.local import LocalExecutor
from kernel_forge.jobs.tune.workbench import Workbench
from kernel_forge.ports import Artifact, Trial
from kernel_forge.source import parse
from kernel_forge.spec import read_specs
from kernel_forge.verify.gate import Gate
from tests.jobs.tune.played_device import PlayedDevice, Values, text


def product(values: Values, _n: int) -> float:
    return 1.0 / (values["BLOCK"] * values["ITEMS"])


def executor(device: PlayedDevice, group: int = 4) -> LocalExecutor:
    source = parse(text(), "/w.cu")
    (spec,) = read_specs(source, None).specs
    gate = Gate(spec, device, seed=1, deadline=time.monotonic() + 60)
    bench = Workbench(spec, source, device, CompileOptions(), None, gate)
    return LocalExecutor(bench, ({"n": 4096},), {"n": 1000}, TimingPlan(outputs=False), group=group, width=8)


def test_a_fault_in_a_group_costs_the_others_nothing() -> None:
    """A fault takes the GPU's context with it: the others of the measurement have no time, and are timed again."""

    class Losing(PlayedDevice):
        def time(self, trials: Sequence[Trial], plan: TimingPlan) -> Timings | Unavailable:
            found = super().time(trials, plan)
            assert isinstance(found, Timings)
            faulty = any(isinstance(r, MemoryFault) for r in found.results)
            lost = Unavailable("another trial lost the context")
            return Timings(tuple(r if isinstance(r, MemoryFault) or not faulty else lost for r in found.results), None)

    device = Losing(lambda v, n: MemoryFault("out-of-bounds", "oh") if v["BLOCK"] == 64 else product(v, n))
    made = executor(device)
    try:
        futures = [made.submit({"BLOCK": block, "ITEMS": 1}) for block in (64, 128, 256)]
        first, second, third = [f.result(10) for f in futures]
    finally:
        made.close()
    assert (first.seconds, first.failure) == (None, "memory fault: oh")
    assert second.seconds == (1 / 128,)
    assert third.seconds == (1 / 256,)


def test_compiling_goes_on_while_another_is_timed() -> None:
    """The second is compiled by the time the first has its result, although the first takes long to time."""
    events: list[tuple[str, int]] = []

    class Slow(PlayedDevice):
        def compile(self, request: CompileRequest) -> Artifact | CompileFailed | Unavailable:
            made = super().compile(request)
            events.append(("compiled", int(request.defines["BLOCK"])))
            return made

        def time(self, trials: Sequence[Trial], plan: TimingPlan) -> Timings | Unavailable:
            time.sleep(0.2)
            found = super().time(trials, plan)
            events.append(("timed", self.timed[-1]["BLOCK"]))
            return found

    made = executor(Slow(product), group=1)
    try:
        futures = [made.submit({"BLOCK": block, "ITEMS": 1}) for block in (64, 128)]
        for future in futures:
            future.result(10)
    finally:
        made.close()
    assert events.index(("compiled", 128)) < events.index(("timed", 64))


def test_closing_cancels_what_has_not_begun() -> None:
    class Slow(PlayedDevice):
        def time(self, trials: Sequence[Trial], plan: TimingPlan) -> Timings | Unavailable:
            time.sleep(0.3)
            return super().time(trials, plan)

    device = Slow(product)
    made = executor(device, group=1)
    futures = [made.submit({"BLOCK": block, "ITEMS": items}) for block in (64, 128, 256) for items in (1, 2, 4)]
    futures[0].result(10)
    made.close()
    assert sum(f.cancelled() for f in futures) >= 6
    assert len(device.timed) <= 3
