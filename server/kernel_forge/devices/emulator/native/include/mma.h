// nvcuda::wmma.
#pragma once
#include "kf/matrix.h"
