"""Whether a GPU takes a launch at all."""

from kernel_forge.domain.hardware import HardwareLimits
from kernel_forge.domain.launch import Launch
from kernel_forge.domain.resources import Resources
from kernel_forge.perf.occupancy import WARP, registers_per_warp

# CUDA C++ Programming Guide, *Technical Specifications per Compute Capability*: the same for all from 3.0 on.
GRID = (2**31 - 1, 65535, 65535)
BLOCK = (1024, 1024, 64)
THREADS = 1024
STATIC_SHARED = 48 << 10
"""Bytes; more is only had as dynamic shared memory."""


def exceeded_limit(limits: HardwareLimits, launch: Launch, resources: Resources | None = None) -> str | None:
    """The first limit that ``launch`` exceeds, in words; None where it fits.

    Without ``resources`` (before anything is compiled) registers and static shared memory count as none.
    """
    for what, extents, most in (("grid", launch.grid, GRID), ("block", launch.block, BLOCK)):
        for axis, extent, limit in zip("xyz", extents, most, strict=True):
            if extent > limit:
                return f"{what}.{axis} is {extent}, more than {limit}"
    x, y, z = launch.block
    threads = x * y * z
    if threads > limits.threads_per_block:
        return f"a block of {threads} threads, more than {limits.threads_per_block}"
    shared = launch.shared_bytes + (resources.shared_bytes if resources is not None else 0)
    if shared > limits.shared_bytes_per_block:
        return f"{shared} bytes of shared memory per block, more than {limits.shared_bytes_per_block}"
    if resources is not None:
        registers = registers_per_warp(resources.registers) * -(-threads // WARP)
        if registers > limits.registers_per_block:
            return f"{registers} registers per block, more than {limits.registers_per_block}"
    return _exceeded_by_cluster(limits, launch)


def _exceeded_by_cluster(limits: HardwareLimits, launch: Launch) -> str | None:
    if launch.cluster is None:
        return None
    x, y, z = launch.cluster
    if limits.cluster_blocks == 1:
        return f"clusters, which compute capability {limits.capability[0]}.{limits.capability[1]} does not have"
    if x * y * z > limits.cluster_blocks:
        return f"a cluster of {x * y * z} blocks, more than {limits.cluster_blocks}"
    for axis, extent, cluster in zip("xyz", launch.grid, launch.cluster, strict=True):
        if extent % cluster:
            return f"grid.{axis} is {extent}, no multiple of the cluster's {cluster}"
    return None
