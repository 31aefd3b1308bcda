"""Warp intrinsics, cooperative groups, and atomics, against what CUDA's programming guide says of each lane."""

# CUDA text keeps its own line breaks.
# ruff: noqa: E501

import ml_dtypes
import numpy as np

from kernel_forge.domain.launch import Schedule
from tests.devices.emulator.shim import Array, run

LANES = np.arange(32)


def lanes(
    body: str, rows: int, *, threads: int = 32, preamble: str = "", schedule: Schedule = Schedule.FORWARD
) -> Array:
    """Row r of the result is what every thread wrote to ``put(r, value)``."""
    text = (
        f"{preamble}\n__global__ void k(int* out) {{\n  int lane = threadIdx.x;\n"
        f"  auto put = [&](int row, int v) {{ out[row * {threads} + lane] = v; }};\n{body}\n}}\n"
    )
    out = np.full(rows * threads, -99, np.int32)
    return run(text, {"out": out}, block=threads, schedule=schedule)["out"].reshape(rows, threads)


def test_shuffles() -> None:
    calls = [
        ("__shfl_sync(full, v, 5)", 10 * np.full(32, 5)),
        ("__shfl_sync(full, v, lane + 3)", 10 * ((LANES + 3) % 32)),
        ("__shfl_sync(full, v, 9, 8)", 10 * (LANES // 8 * 8 + 1)),
        ("__shfl_up_sync(full, v, 3)", 10 * np.where(LANES >= 3, LANES - 3, LANES)),
        ("__shfl_up_sync(full, v, 1, 4)", 10 * np.where(LANES % 4 >= 1, LANES - 1, LANES)),
        ("__shfl_down_sync(full, v, 3)", 10 * np.where(LANES + 3 < 32, LANES + 3, LANES)),
        ("__shfl_down_sync(full, v, 2, 8)", 10 * np.where(LANES % 8 + 2 < 8, LANES + 2, LANES)),
        ("__shfl_xor_sync(full, v, 5)", 10 * (LANES ^ 5)),
        # Lanes of an earlier segment can be read, those of a later one give the caller's own value.
        ("__shfl_xor_sync(full, v, 16, 16)", 10 * np.where(LANES >= 16, LANES - 16, LANES)),
        ("(int)__shfl_sync(full, (double)v + 0.5, 7)", np.full(32, 70)),
        ("(int)__shfl_xor_sync(full, (long long)v << 33, 1) + (int)(__shfl_xor_sync(full, (long long)v << 33, 1) >> 33)", 10 * (LANES ^ 1)),
        ("__half2int_rn(__shfl_down_sync(full, __float2half((float)lane), 1))", np.minimum(LANES + 1, 31)),
    ]  # fmt: skip
    body = "  const unsigned full = 0xffffffffu; int v = 10 * lane;\n"
    body += "\n".join(f"  put({i}, {call});" for i, (call, _) in enumerate(calls))
    got = lanes(body, len(calls), preamble="#include <cuda_fp16.h>")
    for row, (call, want) in zip(got, calls, strict=True):
        assert row.tolist() == list(want), call


def test_votes_matches_and_reductions() -> None:
    body = """
  const unsigned full = 0xffffffffu; int all, some;
  put(0, (int)__ballot_sync(full, lane % 3 == 0));
  put(1, __any_sync(full, lane == 31)); put(2, __all_sync(full, lane < 31)); put(3, __all_sync(full, lane < 32));
  put(4, (int)__match_any_sync(full, lane / 8)); put(5, (int)__match_all_sync(full, 7, &all)); put(6, all);
  put(7, (int)__match_all_sync(full, lane, &some)); put(8, some);
  put(9, __reduce_add_sync(full, lane)); put(10, __reduce_min_sync(full, lane - 5)); put(11, (int)__reduce_max_sync(full, (unsigned)(lane - 5)));
  put(12, (int)__reduce_or_sync(full, 1u << lane)); put(13, (int)__reduce_and_sync(full, ~(1u << (lane % 4)))); put(14, (int)__reduce_xor_sync(full, (unsigned)lane));
  if (lane < 12) { put(15, (int)__activemask()); put(16, __reduce_add_sync(0xfffu, lane)); put(17, (int)__ballot_sync(0xfffu, lane > 9)); }
  put(18, __syncthreads_count(lane < 5)); put(19, __syncthreads_or(lane == 9) != 0); put(20, __syncthreads_and(lane != 9) != 0);
"""
    got = lanes(body, 21)
    bits = sum(1 << i for i in range(0, 32, 3))
    uniform: dict[int, int] = {
        0: bits, 1: 1, 2: 0, 3: 1, 5: 2**32 - 1, 6: 1, 7: 0, 8: 0, 9: 496, 10: -5, 11: 2**32 - 1, 12: 2**32 - 1,
        13: 2**32 - 16, 14: 0, 18: 5, 19: 1, 20: 0,
    }  # fmt: skip
    for row, want in uniform.items():
        assert (got[row].view(np.uint32) == np.uint32(want % 2**32)).all(), row
    assert got[4].view(np.uint32).tolist() == [0xFF << (8 * (i // 8)) for i in range(32)]
    for row, want in ((15, 0xFFF), (16, 66), (17, 0xC00)):
        assert got[row].tolist() == [want] * 12 + [-99] * 20


def test_tiles_and_coalesced_groups() -> None:
    body = """
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  put(0, (int)tile.thread_rank()); put(1, (int)tile.meta_group_rank()); put(2, (int)tile.meta_group_size()); put(3, (int)tile.size());
  put(4, tile.shfl(lane, 2)); put(5, tile.shfl_down(lane, 3)); put(6, tile.shfl_up(lane, 3)); put(7, tile.shfl_xor(lane, 1));
  put(8, (int)tile.ballot(lane % 2)); put(9, tile.any(lane == 4)); put(10, tile.all(lane < 64)); put(11, (int)tile.match_any(lane / 4));
  put(12, cg::reduce(tile, lane, cg::plus<int>())); put(13, cg::reduce(tile, lane, cg::greater<int>()));
  put(14, cg::inclusive_scan(tile, lane, cg::plus<int>())); put(15, cg::exclusive_scan(tile, lane, cg::plus<int>()));
  put(16, cg::inclusive_scan(tile, 1)); put(17, (int)block.thread_rank()); put(18, (int)block.size());
  if (lane % 3 == 1) {
    cg::coalesced_group g = cg::coalesced_threads();
    put(19, (int)g.size()); put(20, (int)g.thread_rank()); put(21, g.shfl(lane, 0)); put(22, g.shfl_down(lane, 1));
    put(23, (int)g.ballot(lane > 16)); put(24, cg::reduce(g, lane, cg::plus<int>())); g.sync();
    put(25, cg::exclusive_scan(g, 1, cg::plus<int>()));
  }
  cg::coalesced_group half = cg::binary_partition(cg::tiled_partition<32>(block), lane % 2 == 0);
  put(26, (int)half.size()); put(27, (int)half.thread_rank()); put(28, cg::reduce(half, lane % 32, cg::plus<int>()));
  block.sync(); cg::sync(tile);
"""
    preamble = (
        "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n#include <cooperative_groups/scan.h>\n"
        "namespace cg = cooperative_groups;"
    )
    got = lanes(body, 29, threads=64, preamble=preamble)
    i = np.arange(64)
    base, r = i // 8 * 8, i % 8
    expected: dict[int, Array] = {
        0: r, 1: i // 8, 2: i * 0 + 8, 3: i * 0 + 8, 4: base + 2, 5: np.where(r + 3 < 8, i + 3, i),
        6: np.where(r >= 3, i - 3, i), 7: i ^ 1, 8: i * 0 + 0xAA, 9: base == 0, 10: i * 0 + 1,
        11: np.where(r < 4, 0x0F, 0xF0), 12: 8 * base + 28, 13: base + 7, 14: (r + 1) * base + r * (r + 1) // 2,
        15: r * base + r * (r - 1) // 2, 16: r + 1, 17: i, 18: i * 0 + 64, 26: i * 0 + 16, 27: i % 32 // 2,
        28: np.where(i % 2 == 0, 240, 256),
    }  # fmt: skip
    for row, want in expected.items():
        assert got[row].tolist() == want.astype(int).tolist(), row
    for warp in (0, 1):
        members = [t for t in range(32 * warp, 32 * warp + 32) if t % 3 == 1]
        for rank, t in enumerate(members):
            after = members[rank + 1] if rank + 1 < len(members) else t
            votes = sum(1 << n for n, m in enumerate(members) if m > 16)
            assert got[19:26, t].tolist() == [len(members), rank, members[0], after, votes, sum(members), rank]


def test_atomics_of_every_type() -> None:
    # 64 blocks of 64 threads; the result of each operation by hand.
    text = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void k(int* i, unsigned* u, long long* l, unsigned long long* w, float* f, double* d, __half* h, __nv_bfloat16* b, unsigned short* s) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&i[0], t); atomicSub(&i[1], 1); atomicMin(&i[2], t - 100); atomicMax(&i[3], t); atomicAnd(&i[4], ~(1 << t % 31));
  atomicOr(&i[5], 1 << t % 31); atomicXor(&i[6], t); if (atomicExch(&i[7], 1) == 0) atomicAdd(&i[8], 1);
  if (atomicCAS(&i[9], 0, t + 1) == 0) atomicAdd(&i[10], 1); atomicAdd_block(&i[11], 1); atomicMax_system(&i[12], t);
  atomicAdd(&u[0], 1u); atomicInc(&u[1], 9u); atomicDec(&u[2], 9u); atomicMax(&u[3], (unsigned)-t); atomicMin(&u[4], (unsigned)t + 7u); atomicSub(&u[5], 2u);
  atomicMin(&l[0], -(long long)t << 33); atomicMax(&l[1], (long long)t << 33); atomicAnd(&l[2], ~(1ll << t % 63)); atomicXor(&l[3], (long long)t << 20);
  atomicAdd(&w[0], 1ull << 32); atomicMax(&w[1], (unsigned long long)t << 40); atomicOr(&w[2], 1ull << t % 64); atomicExch(&w[3], 5ull);
  if (atomicCAS(&w[4], 0ull, 8ull) == 0) atomicAdd(&w[5], 1ull);
  atomicAdd(&f[0], 0.5f); atomicExch(&f[1], 3.0f); atomicAdd(&d[0], 0.25);
  if (t < 64) { atomicAdd(&h[0], __float2half(0.5f)); atomicAdd((__half2*)&h[2], __floats2half2_rn(1.0f, 2.0f)); atomicAdd(&b[0], __float2bfloat16(1.0f)); }
  if (atomicCAS(&s[0], (unsigned short)0, (unsigned short)7) == 0) atomicAdd(&i[13], 1);
  float old = atomicAdd(&f[2], 1.0f); if (old == 4095.0f) i[14] = 1;
}
"""
    i = np.zeros(16, np.int32)
    i[4] = -1
    u = np.array([0, 0, 0, 0, 2**32 - 1, 0, 0, 0], np.uint32)
    buffers = {
        "i": i, "u": u, "l": np.array([0, 0, -1, 0]), "w": np.zeros(6, np.uint64), "f": np.zeros(4, np.float32),
        "d": np.zeros(1), "h": np.zeros(4, np.float16), "b": np.zeros(1, ml_dtypes.bfloat16), "s": np.zeros(2, np.uint16),
    }  # fmt: skip
    n = 4096
    for schedule in (Schedule.FORWARD, Schedule.RANDOM):
        after = run(text, buffers, grid=64, block=64, schedule=schedule)
        xor = 0
        for t in range(n):
            xor ^= t
        assert after["i"][:9].tolist() == [n * (n - 1) // 2, -n, -100, n - 1, -(2**31), 2**31 - 1, xor, 1, 1]
        assert 0 < after["i"][9] <= n and after["i"][10:15].tolist() == [1, n, n - 1, 1, 1]
        # atomicInc wraps after 9, so 4096 of them leave 4096 mod 10; atomicDec from 0 goes to 9 first.
        assert after["u"][:6].tolist() == [n, n % 10, (0 - n) % 10, 2**32 - 1, 7, 2**32 - 2 * n]
        assert after["l"].tolist() == [-(n - 1) << 33, (n - 1) << 33, -(2**63), xor << 20]
        assert after["w"].tolist() == [n << 32, (n - 1) << 40, 2**64 - 1, 5, 8, 1]
        assert after["f"][:3].tolist() == [n / 2, 3, n] and after["d"][0] == n / 4
        assert after["h"].tolist() == [32, 0, 64, 128] and float(after["b"][0]) == 64 and after["s"][0] == 7
