// Split arrive and wait barriers, C style.
#pragma once
#include "kf/phases.h"
