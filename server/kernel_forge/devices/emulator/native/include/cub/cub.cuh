// The block- and warp-wide primitives of CUB that kernels use most, on the emulator's barriers. The rest of CUB is host
// code or tuned for hardware.
#pragma once
#include "block/block_load.cuh"
#include "block/block_reduce.cuh"
#include "block/block_scan.cuh"
#include "block/block_store.cuh"
#include "warp/warp_reduce.cuh"
#include "warp/warp_scan.cuh"
