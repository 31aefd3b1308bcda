"""How many blocks of a kernel fit on a multiprocessor, and what limits them.

The rules are those of CUDA's occupancy calculation (CUDA C++ Programming Guide, *Hardware Multithreading* and
*Compute Capabilities*): a warp gets registers in units of 256, a multiprocessor holds a multiple of four warps; shared
memory comes in units, with 1 KiB kept by the system for every block from compute capability 8.0 on. tests/gpu compares
it with the driver's answers.
"""

from kernel_forge.domain.hardware import HardwareLimits
from kernel_forge.domain.performance import Occupancy

WARP = 32
_REGISTER_UNIT = 256
_WARP_UNIT = 4


def occupancy(limits: HardwareLimits, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """For a block of ``threads`` with ``registers`` per thread and ``shared_bytes`` of static and dynamic memory."""
    warps = -(-threads // WARP)
    modern = limits.capability >= (8, 0)
    unit, kept = (128, 1024) if modern else (256, 0)
    shared = -(-(shared_bytes + kept) // unit) * unit
    fits = {
        "threads": limits.threads // (warps * WARP),
        "blocks": limits.blocks,
        "registers": _by_registers(limits, warps, registers),
        "shared memory": limits.shared_bytes // shared if shared else limits.blocks,
    }
    limited_by = min(fits, key=lambda what: fits[what])
    blocks = fits[limited_by]
    held = limits.threads // WARP
    return Occupancy(blocks, blocks * warps, blocks * warps / held, limited_by)


def registers_per_warp(registers: int) -> int:
    """What a warp is given whose threads need ``registers`` each."""
    return -(-registers * WARP // _REGISTER_UNIT) * _REGISTER_UNIT


def _by_registers(limits: HardwareLimits, warps: int, registers: int) -> int:
    if registers == 0:
        return limits.blocks
    per_warp = registers_per_warp(registers)
    # Warps get their registers in the four partitions of a multiprocessor alike.
    held = limits.registers // per_warp // _WARP_UNIT * _WARP_UNIT
    return held // warps
