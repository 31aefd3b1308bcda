"""Times for people and for programs. The basis goes with every number."""

from dataclasses import asdict
from typing import Any

from kernel_forge.domain.measurement import FEWEST_FOR_INTERVAL, STEADY, Measurement, Peaks
from kernel_forge.domain.performance import Attained, Counters, KernelTiming, Occupancy

TOO_FEW = "too few samples for an interval"
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def duration(seconds: float) -> str:
    """``12.34 us``: four significant digits in the unit that leaves something before the point."""
    scale, unit = next(((s, u) for s, u in _UNITS if abs(seconds) >= s), _UNITS[-1])
    return f"{seconds / scale:.4g} {unit}"


def rate(per_second: float, unit: str) -> str:
    """``4.31 TB/s``: three significant digits with a decimal prefix."""
    prefixes = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"))
    scale, prefix = next(((s, p) for s, p in prefixes if per_second >= s), (1.0, ""))
    return f"{per_second / scale:.3g} {prefix}{unit}"


def time_text(made: Measurement) -> str:
    """``12.34 us ± 1.2 %``; the basis has to stand near."""
    spread = 50 * (made.high - made.low) / made.seconds if made.seconds else 0.0
    few = made.samples < FEWEST_FOR_INTERVAL
    return f"{duration(made.seconds)} {f'with {TOO_FEW}' if few else f'± {spread:.2g} %'}"


def timing_lines(timing: KernelTiming) -> list[str]:
    """One timing: a headline with the interval and the basis, then what it means."""
    made = timing.measurement
    sizes = ", ".join(f"{k} = {v}" for k, v in timing.sizes.items())
    few = made.samples < FEWEST_FOR_INTERVAL
    lines = [
        f"{timing.kernel}: {time_text(made)} ({made.basis})",
        f"  case       {sizes or 'the only one'}",
    ]
    if dict(timing.checked_at) != dict(timing.sizes):
        checked = ", ".join(f"{k} = {v}" for k, v in timing.checked_at.items())
        lines.append(f"  checked    at {checked}, not at the timed case")
    elif not timing.result_checked:
        lines.append("  checked    before it was timed; the result of the timed launches was not compared")
    if timing.configuration:
        lines.append("  tunables   " + ", ".join(f"{k} = {v}" for k, v in timing.configuration.items()))
    lines.append(
        f"  samples    {made.samples}, each the mean of {made.batch} ({made.method})"
        + ("" if few else "; 95 % interval of the median")
    )
    if timing.attained is not None and timing.peaks is not None:
        lines.extend(_rates(timing.attained, timing.peaks))
    if timing.occupancy is not None:
        lines.append("  occupancy  " + occupancy_text(timing.occupancy))
    for number, found in enumerate(timing.counters, 1):
        lines.extend(_counters(found, number if len(timing.counters) > 1 else None))
    if timing.no_counters is not None:
        lines.append(f"  note: no hardware counters: {timing.no_counters}")
    if made.launch_bound:
        lines.append("  note: launch-bound: most of this is the time of a launch, not of the kernel")
    lines.extend(f"  note: {note}" for note in timing.notes)
    if timing.drift is None:
        lines.append("  note: whether the clocks were steady is not known: the control kernel could not be timed")
    elif abs(timing.drift - 1) >= STEADY:
        change = 100 * (timing.drift - 1)
        lines.append(f"  note: the clocks moved by {change:+.1f} % meanwhile; measure again when the GPU is at rest")
    return lines


def occupancy_text(held: Occupancy) -> str:
    """``75 % (6 blocks per multiprocessor, limited by registers)``."""
    return f"{100 * held.share:.0f} % ({held.blocks} blocks per multiprocessor, limited by {held.limited_by})"


def _counters(found: Counters, number: int | None) -> list[str]:
    which = "counters  " if number is None else f"launch {number}  "
    read, written = (_number(n, 2**-20) for n in (found.memory_read_bytes, found.memory_written_bytes))
    memory = f"{read} MiB read, {written} MiB written"
    return [
        f"  {which} {memory}; memory {_number(found.memory_percent)} % busy, "
        f"multiprocessors {_number(found.multiprocessor_percent)} %",
        f"             occupancy {_number(found.occupancy_percent)} %, L2 hits {_number(found.l2_hit_percent)} %, "
        f"loads use {_number(found.load_sector_percent)} % of their sectors, {_number(found.active_lanes)} of 32 lanes "
        f"active, {_number(found.bank_conflicts)} bank conflicts (ncu)",
    ]


def _number(value: float | None, scale: float = 1.0) -> str:
    return "?" if value is None else f"{value * scale:.3g}"


def _rates(found: Attained, peaks: Peaks) -> list[str]:
    copy = rate(peaks.copy_bytes_per_second, "B/s")
    lines = [
        f"  memory     {rate(found.bytes_per_second, 'B/s')} of what must move, {100 * found.bandwidth_share:.0f} % of "
        f"the copy bandwidth ({copy}, {peaks.basis})"
    ]
    if found.operations_per_second is not None and found.arithmetic_share is not None and found.arithmetic is not None:
        peak = rate(peaks.operations_per_second[found.arithmetic], "FLOP/s")
        lines.append(
            f"  arithmetic {rate(found.operations_per_second, 'FLOP/s')} as the reference counts it, "
            f"{100 * found.arithmetic_share:.1f} % of the {found.arithmetic} peak ({peak})"
        )
    if found.share is not None:
        lines.append(f"  roofline   {100 * found.share:.0f} % of the {found.bound} roof")
    return lines


def timing_json(timing: KernelTiming) -> dict[str, Any]:
    """One timing as JSON data; seconds, bytes per second, operations per second."""
    return {
        "kernel": timing.kernel,
        "sizes": dict(timing.sizes),
        "checked_at": dict(timing.checked_at),
        "configuration": dict(timing.configuration),
        "device": timing.device,
        "measurement": measurement_json(timing.measurement),
        "drift": timing.drift,
        "occupancy": None if timing.occupancy is None else asdict(timing.occupancy),
        "attained": None if timing.attained is None else asdict(timing.attained),
        "counters": [asdict(c) for c in timing.counters],
        "no_counters": timing.no_counters,
        "result_checked": timing.result_checked,
        "notes": list(timing.notes),
        "peaks": None if timing.peaks is None else asdict(timing.peaks),
    }


def measurement_json(made: Measurement) -> dict[str, Any]:
    """A measurement as JSON data; ``interval`` is null where there are too few samples for one."""
    return {
        "seconds": made.seconds,
        "interval": None if made.samples < FEWEST_FOR_INTERVAL else [made.low, made.high],
        "samples": made.samples,
        "batch": made.batch,
        "method": made.method,
        "launch_bound": made.launch_bound,
        "basis": made.basis,
    }
