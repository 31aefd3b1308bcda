// Asynchronous copies.
#pragma once
#include "kf/async.h"
