"""What the outputs of runs say: equal to the reference, the same twice, moving with the inputs.

Each function gives None where all is well, else what is wrong and the bytes whose writer would explain it.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Watch
from kernel_forge.domain.outcome import Mismatch, MismatchKind, RaceFound
from kernel_forge.domain.spec import BufferArg, KernelSpec, Role
from kernel_forge.verify.comparison import compare, describe, first_difference, representable, same_bits
from kernel_forge.verify.expectation import Expected
from kernel_forge.verify.failure import Tally
from kernel_forge.verify.inputs import Array
from kernel_forge.verify.runs import Options
from kernel_forge.verify.tolerance import smallest

Outputs = Mapping[str, Array]


def against_reference(
    spec: KernelSpec, expected: Expected, outputs: Outputs, poison_seed: int, tally: Tally
) -> tuple[Mismatch, Watch] | None:
    """Every output within its tolerance; ``tally`` collects how much of it was used."""
    for output in spec.outputs:
        result = compare(
            output.name,
            output.dtype,
            outputs[output.name],
            expected.reference[output.name],
            expected.tolerance[output.name].error,
            poison_seed=poison_seed if output.role is Role.OUT else None,
            overflow=expected.tolerance[output.name].overflow,
        )
        tally.add(output.name, result.worst, result.compared, result.left_out)
        if result.mismatch is not None:
            return result.mismatch, _element(output, result.mismatch.index, outputs[output.name].shape)
    return None


def between_runs(
    spec: KernelSpec, one: tuple[Outputs, Options], two: tuple[Outputs, Options], *, unordered: Collection[str]
) -> tuple[RaceFound, Watch] | None:
    """Two runs of the same inputs: equal bit for bit, the ``unordered`` outputs (sums by float atomics) excepted."""
    for output in spec.outputs:
        a, b = one[0][output.name], two[0][output.name]
        if same_bits(a, b) or output.name in unordered:
            continue
        first, second = one[1], two[1]
        index = tuple(int(i) for i in np.unravel_index(first_difference(a, b), a.shape))
        what = f"{output.name}[{', '.join(map(str, index))}]"
        if second.schedule is first.schedule:
            message = f"{what} differs between two runs of the same inputs: {a[index]} and {b[index]}"
        else:
            message = (
                f"{what} depends on the order of threads: {a[index]} in {first.schedule.value} order, "
                f"{b[index]} in {second.schedule.value} order"
            )
        message += "; threads race for it"
        return RaceFound(message), _element(output, index, a.shape)
    return None


def between_fillings(
    spec: KernelSpec, one: Outputs, two: Outputs, *, unordered: Collection[str]
) -> tuple[Mismatch, Watch] | None:
    """Two runs that differ only in what fresh memory holds: equal, else something unwritten was read."""
    for output in spec.outputs:
        a, b = one[output.name], two[output.name]
        if same_bits(a, b) or output.name in unordered:
            continue
        index = tuple(int(i) for i in np.unravel_index(first_difference(a, b), a.shape))
        bits = np.dtype(f"u{a.dtype.itemsize}")
        count = int(np.count_nonzero(a.reshape(-1).view(bits) != b.reshape(-1).view(bits)))
        apart = abs(float(a[index]) - float(b[index]))
        mismatch = Mismatch(
            MismatchKind.UNWRITTEN_READ,
            output.name,
            count,
            int(a.size),
            index,
            a[index].item() if output.dtype is not DType.BFLOAT16 else float(a[index]),
            b[index].item() if output.dtype is not DType.BFLOAT16 else float(b[index]),
            0.0,
            apart,
        )
        return replace(mismatch, message=describe(mismatch)), _element(output, index, a.shape)
    return None


def between_inputs(
    spec: KernelSpec, one: tuple[Expected, Outputs], two: tuple[Expected, Outputs]
) -> tuple[Mismatch, Watch] | None:
    """Different inputs: no output may stay what it was where the reference moves."""
    for output in spec.outputs:
        a, b = one[1][output.name], two[1][output.name]
        if a.size == 0 or not same_bits(a, b):
            continue
        want_a = representable(output.dtype, one[0].reference[output.name])
        want_b = representable(output.dtype, two[0].reference[output.name])
        with np.errstate(all="ignore"):
            apart = np.abs(want_a - want_b)
            scale = np.maximum(np.abs(want_a), np.abs(want_b))
        u, floor = (output.dtype.unit_roundoff, smallest(output.dtype)) if output.dtype.is_float else (0.0, 0.0)
        moved = apart > 64 * (u * scale + floor)
        if not moved.any():
            continue
        index = tuple(int(i) for i in np.unravel_index(int(np.flatnonzero(moved)[0]), a.shape))
        mismatch = Mismatch(
            MismatchKind.INSENSITIVE,
            output.name,
            int(np.count_nonzero(moved)),
            int(a.size),
            index,
            float(want_b[index]),
            float(b[index]),
            0.0,
            float(apart[moved].max()),
        )
        return replace(mismatch, message=describe(mismatch)), _element(output, index, a.shape)
    return None


def _element(output: BufferArg, index: tuple[int, ...], shape: tuple[int, ...]) -> Watch:
    flat = int(np.ravel_multi_index(index, shape)) if shape else 0
    size = output.dtype.itemsize
    return Watch(output.name, flat * size, size)
