// Answered by cub.cuh.
#pragma once
#include "../cub.cuh"
