// 8-bit floating-point types.
#pragma once
#include "kf_cuda.h"
#include "kf/float8.h"
