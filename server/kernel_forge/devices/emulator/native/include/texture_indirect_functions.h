// Answered by what is always there.
#pragma once
#include "kf_cuda.h"
