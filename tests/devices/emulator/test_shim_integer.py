"""Integer intrinsics against plain Python integers."""

from collections.abc import Callable

import numpy as np

from kernel_forge.domain.dtypes import DType
from tests.devices.emulator.shim import Array, table

I32, U32, I64, U64 = DType.INT32, DType.UINT32, DType.INT64, DType.UINT64
M32, M64 = 2**32 - 1, 2**64 - 1
EDGES = [0, 1, 2, 31, 32, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x01234567, 0x80808080]


def s32(v: int) -> int:
    return (v + 2**31) % 2**32 - 2**31


def s64(v: int) -> int:
    return (v + 2**63) % 2**64 - 2**63


def words(seed: int) -> Array:
    rng = np.random.default_rng(seed)
    return rng.permutation(np.concatenate([np.array(EDGES * 4), rng.integers(0, 2**32, 400)])).astype(np.uint32)


def check(rows: dict[str, tuple[DType, Callable[[int, int, int], int]]], arguments: dict[str, Array]) -> None:
    got = table(arguments, [(call, kind) for call, (kind, _) in rows.items()])
    columns = [a.tolist() for a in arguments.values()]
    for result, (call, (kind, function)) in zip(got, rows.items(), strict=True):
        bits = 8 * kind.itemsize
        for at, values in enumerate(zip(*columns, strict=True)):
            want = function(*values) % 2**bits
            assert int(result[at]) % 2**bits == want, (call, [hex(v) for v in values], hex(int(result[at])), hex(want))


def test_bit_counting_and_permutation() -> None:
    def byte_perm(x: int, y: int, s: int) -> int:
        both = (y << 32 | x).to_bytes(8, "little")
        return int.from_bytes(bytes(both[s >> (4 * i) & 7] for i in range(4)), "little")

    def fns(mask: int, base: int, offset: int) -> int:  # PTX ISA, fns
        positions = range(base, 32) if offset >= 0 else range(base, -1, -1)
        found = [p for p in positions if mask >> p & 1]
        if offset == 0:
            return base if mask >> base & 1 else M32
        return found[abs(offset) - 1] if len(found) >= abs(offset) else M32

    check(
        {
            "__popc(a)": (I32, lambda a, b, c: a.bit_count()),
            "__clz((int)a)": (I32, lambda a, b, c: 32 - a.bit_length()),
            "__ffs((int)a)": (I32, lambda a, b, c: (a & -a).bit_length()),
            "__brev(a)": (U32, lambda a, b, c: int(f"{a:032b}"[::-1], 2)),
            "__popcll((unsigned long long)a << 32 | b)": (I32, lambda a, b, c: (a << 32 | b).bit_count()),
            "__clzll((long long)a << 32 | b)": (I32, lambda a, b, c: 64 - (a << 32 | b).bit_length()),
            "__ffsll((long long)a << 32 | b)": (I32, lambda a, b, c: ((a << 32 | b) & -(a << 32 | b)).bit_length()),
            "__brevll((unsigned long long)a << 32 | b)": (U64, lambda a, b, c: int(f"{a << 32 | b:064b}"[::-1], 2)),
            "__byte_perm(a, b, c)": (U32, byte_perm),
            "__funnelshift_l(a, b, c)": (U32, lambda a, b, c: (b << 32 | a) << (c & 31) >> 32),
            "__funnelshift_lc(a, b, c)": (U32, lambda a, b, c: (b << 32 | a) << min(c, 32) >> 32),
            "__funnelshift_r(a, b, c)": (U32, lambda a, b, c: (b << 32 | a) >> (c & 31)),
            "__funnelshift_rc(a, b, c)": (U32, lambda a, b, c: (b << 32 | a) >> min(c, 32)),
            "__fns(a, b % 32, (int)(c % 9) - 4)": (U32, lambda a, b, c: fns(a, b % 32, c % 9 - 4)),
        },
        {"a": words(1), "b": words(2), "c": words(3)},
    )


def test_products_sums_and_averages() -> None:
    def s24(v: int) -> int:
        return (v + 2**23) % 2**24 - 2**23

    def lanes(v: int, bits: int, signed: bool) -> list[int]:
        parts = [v >> s & (2**bits - 1) for s in range(0, 32, bits)]
        return [p - 2**bits if signed and p >> (bits - 1) else p for p in parts]

    def dot(a: int, b: int, signed: bool) -> int:
        return sum(x * y for x, y in zip(lanes(a, 8, signed), lanes(b, 8, signed), strict=True))

    def dot2(a: int, b: int, first: int) -> int:
        return sum(x * y for x, y in zip(lanes(a, 16, True), lanes(b, 8, True)[first : first + 2], strict=True))

    wide = lambda a, b: a << 32 | b  # noqa: E731
    check(
        {
            "__mulhi((int)a, (int)b)": (I32, lambda a, b, c: s32(a) * s32(b) >> 32),
            "__umulhi(a, b)": (U32, lambda a, b, c: a * b >> 32),
            "__mul64hi((long long)((unsigned long long)a << 32 | b), (long long)((unsigned long long)c << 32 | a))": (
                I64,
                lambda a, b, c: s64(wide(a, b)) * s64(wide(c, a)) >> 64,
            ),
            "__umul64hi((unsigned long long)a << 32 | b, (unsigned long long)c << 32 | a)": (
                U64,
                lambda a, b, c: wide(a, b) * wide(c, a) >> 64,
            ),
            "__mul24((int)a, (int)b)": (I32, lambda a, b, c: s24(a) * s24(b)),
            "__umul24(a, b)": (U32, lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
            "__sad((int)a, (int)b, c)": (U32, lambda a, b, c: abs(s32(a) - s32(b)) + c),
            "__usad(a, b, c)": (U32, lambda a, b, c: abs(a - b) + c),
            "__hadd((int)a, (int)b)": (I32, lambda a, b, c: s32(a) + s32(b) >> 1),
            "__rhadd((int)a, (int)b)": (I32, lambda a, b, c: s32(a) + s32(b) + 1 >> 1),
            "__uhadd(a, b)": (U32, lambda a, b, c: a + b >> 1),
            "__urhadd(a, b)": (U32, lambda a, b, c: a + b + 1 >> 1),
            "__dp4a((int)a, (int)b, (int)c)": (I32, lambda a, b, c: dot(a, b, True) + c),
            "__dp4a(a, b, c)": (U32, lambda a, b, c: dot(a, b, False) + c),
            "__dp2a_lo((int)a, (int)b, (int)c)": (I32, lambda a, b, c: dot2(a, b, 0) + c),
            "__dp2a_hi((int)a, (int)b, (int)c)": (I32, lambda a, b, c: dot2(a, b, 2) + c),
        },
        {"a": words(4), "b": words(5), "c": words(6)},
    )


def per_lane(function: Callable[[int, int], int], bits: int, signed: bool) -> Callable[[int, int, int], int]:
    def split(v: int) -> list[int]:
        parts = [v >> s & (2**bits - 1) for s in range(0, 32, bits)]
        return [p - 2**bits if signed and p >> (bits - 1) else p for p in parts]

    def whole(a: int, b: int, _: int) -> int:
        pieces = [function(x, y) % 2**bits for x, y in zip(split(a), split(b), strict=True)]
        return sum(p << (bits * i) for i, p in enumerate(pieces))

    return whole


def test_simd_within_a_word() -> None:
    rows: dict[str, tuple[DType, Callable[[int, int, int], int]]] = {}
    for n, bits in ((2, 16), (4, 8)):
        low, high, top = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 2**bits - 1
        unsigned: dict[str, Callable[[int, int], int]] = {
            "add": lambda x, y: x + y,
            "sub": lambda x, y: x - y,
            "addus": lambda x, y, top=top: min(x + y, top),
            "subus": lambda x, y: max(x - y, 0),
            "absdiffu": lambda x, y: abs(x - y),
            "avgu": lambda x, y: (x + y + 1) // 2,
            "haddu": lambda x, y: (x + y) // 2,
            "maxu": max,
            "minu": min,
            "cmpeq": lambda x, y: -(x == y),
            "cmpne": lambda x, y: -(x != y),
            "seteq": lambda x, y: int(x == y),
            "setne": lambda x, y: int(x != y),
        }  # fmt: skip
        signed: dict[str, Callable[[int, int], int]] = {
            "addss": lambda x, y, low=low, high=high: max(low, min(high, x + y)),
            "subss": lambda x, y, low=low, high=high: max(low, min(high, x - y)),
            "absdiffs": lambda x, y: abs(x - y),
            # Away from the floor only where the average is not negative, as NVIDIA's sequence for it does.
            "avgs": lambda x, y: (x + y + (x + y >= 0)) // 2,
            "maxs": max,
            "mins": min,
        }
        comparisons: dict[str, Callable[[int, int], bool]] = {
            "ge": int.__ge__, "gt": int.__gt__, "le": int.__le__, "lt": int.__lt__,
        }  # fmt: skip
        for name, compare in comparisons.items():
            for sign, table_ in (("u", unsigned), ("s", signed)):
                table_[f"cmp{name}{sign}"] = lambda x, y, compare=compare: -int(compare(x, y))
                table_[f"set{name}{sign}"] = lambda x, y, compare=compare: int(compare(x, y))
        for is_signed, functions in ((False, unsigned), (True, signed)):
            for name, function in functions.items():
                rows[f"__v{name}{n}(a, b)"] = (U32, per_lane(function, bits, is_signed))
        single: dict[str, Callable[[int, int], int]] = {
            "abs": lambda x, y: abs(x),
            "neg": lambda x, y: -x,
            "absss": lambda x, y, high=high: min(abs(x), high),
            "negss": lambda x, y, high=high: min(-x, high),
        }
        for name, function in single.items():
            rows[f"__v{name}{n}(a)"] = (U32, per_lane(function, bits, True))
        for sign in ("s", "u"):
            difference = per_lane(lambda x, y: abs(x - y), bits, sign == "s")
            rows[f"__vsad{sign}{n}(a, b)"] = (
                U32,
                lambda a, b, c, f=difference, bits=bits, top=top: sum(
                    f(a, b, c) >> s & top for s in range(0, 32, bits)
                ),
            )
    check(rows, {"a": words(7), "b": words(8), "c": words(9)})


def test_dynamic_programming_functions() -> None:
    def halves(function: Callable[[int, int, int], int], signed: bool) -> Callable[[int, int, int], int]:
        def lane(v: int, s: int) -> int:
            part = v >> s & 0xFFFF
            return part - 2**16 if signed and part >> 15 else part

        return lambda a, b, c: sum((function(lane(a, s), lane(b, s), lane(c, s)) % 2**16) << s for s in (0, 16))

    def s16(v: int) -> int:
        return (v + 2**15) % 2**16 - 2**15

    rows: dict[str, tuple[DType, Callable[[int, int, int], int]]] = {}
    for name, pick in (("max", max), ("min", min)):
        rows |= {
            f"__viadd{name}_s32(a, b, c)": (I32, lambda a, b, c, p=pick: p(s32(a + b), s32(c))),
            f"__viadd{name}_s32_relu(a, b, c)": (I32, lambda a, b, c, p=pick: max(p(s32(a + b), s32(c)), 0)),
            f"__viadd{name}_u32(a, b, c)": (U32, lambda a, b, c, p=pick: p((a + b) & M32, c)),
            f"__viadd{name}_s16x2(a, b, c)": (U32, halves(lambda x, y, z, p=pick: p(s16(x + y), z), True)),
            f"__viadd{name}_s16x2_relu(a, b, c)": (U32, halves(lambda x, y, z, p=pick: max(p(s16(x + y), z), 0), True)),
            f"__viadd{name}_u16x2(a, b, c)": (U32, halves(lambda x, y, z, p=pick: p((x + y) & 0xFFFF, z), False)),
            f"__vi{name}3_s32(a, b, c)": (I32, lambda a, b, c, p=pick: p(s32(a), s32(b), s32(c))),
            f"__vi{name}3_s32_relu(a, b, c)": (I32, lambda a, b, c, p=pick: max(p(s32(a), s32(b), s32(c)), 0)),
            f"__vi{name}3_u32(a, b, c)": (U32, lambda a, b, c, p=pick: p(a, b, c)),
            f"__vi{name}3_s16x2(a, b, c)": (U32, halves(lambda x, y, z, p=pick: p(x, y, z), True)),
            f"__vi{name}3_u16x2(a, b, c)": (U32, halves(lambda x, y, z, p=pick: p(x, y, z), False)),
            f"__vi{name}_s32_relu(a, b)": (I32, lambda a, b, c, p=pick: max(p(s32(a), s32(b)), 0)),
            f"__vi{name}_s16x2_relu(a, b)": (U32, halves(lambda x, y, z, p=pick: max(p(x, y), 0), True)),
            f"both{name}(a, b)": (U32, lambda a, b, c, p=pick: p(s32(a), s32(b)) ^ int(p(s32(a), s32(b)) == s32(a))),
        }
    preamble = "".join(
        f"__device__ unsigned both{m}(unsigned a, unsigned b) {{ bool p; int v = __vib{m}_s32(a, b, &p);"
        " return (unsigned)v ^ (unsigned)p; }\n"
        for m in ("max", "min")
    )
    arguments = {"a": words(10), "b": words(11), "c": words(12)}
    got = table(arguments, [(call, kind) for call, (kind, _) in rows.items()], preamble)
    columns = [v.tolist() for v in arguments.values()]
    for result, (call, (_, function)) in zip(got, rows.items(), strict=True):
        want = np.array([function(*t) % 2**32 for t in zip(*columns, strict=True)], np.uint32)
        assert result.view(np.uint32).tolist() == want.tolist(), call
