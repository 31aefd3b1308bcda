"""Child process: compile one text with NVRTC and print the log as JSON. Starts for every text, so it imports little.

Input (stdin), a job: ``{"library", "includes", "text", "headers", "dropped", "name", "defines", "flags", "parent"}``;
``expressions`` are compiled even where nobody uses them: instances of templates, and for machine code all kernels and
addresses of variables. For machine code also ``architecture`` and ``image`` (file to write).
Output: ``{"accepted", "log"}``, for machine code also ``names``, in the order of ``expressions``.
"""

import ctypes
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernel_forge.processes import end_with_parent, give_way

# Host headers have no meaning for device code; NVRTC cannot find them and would stop at the first.
_HOST_HEADERS = (
    "algorithm array assert.h bitset cassert cfloat chrono climits cmath complex cstddef cstdint cstdio "
    "cstdlib cstring ctime deque errno.h exception fcntl.h float.h fstream functional getopt.h "
    "initializer_list iomanip ios iosfwd iostream istream iterator limits limits.h list map math.h memory "
    "mutex new numeric omp.h optional ostream queue random ratio set signal.h sstream stack stdarg.h "
    "stdbool.h stddef.h stdexcept stdint.h stdio.h stdlib.h string string.h string_view sys/stat.h "
    "sys/time.h sys/types.h thread time.h tuple type_traits typeinfo unistd.h unordered_map unordered_set "
    "utility vector variant "
).split()
# What nvcc brings without an include: it always includes cuda_runtime.h, and that the C library's headers.
_COMMON = """#pragma once
#include <driver_types.h>
typedef unsigned int uint; typedef unsigned short ushort; typedef unsigned long ulong;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VALF INFINITY
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define M_LN2 0.69314718055994530942
#define M_E 2.7182818284590452354
#ifndef assert
#define assert(x) ((void)(x))
#endif
"""
_INTEGERS = """typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long uint64_t; typedef unsigned long uintptr_t; typedef long intptr_t;
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define INT32_MAX INT_MAX
#define INT32_MIN INT_MIN
#define UINT_MAX 4294967295U
#define UINT32_MAX UINT_MAX
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ULL
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
"""
# libcu++ defines these itself, with other types than the host's; two definitions do not go together.
_LIBRARY_INTEGERS = """#include <cuda/std/cstdint>
#include <cuda/std/climits>
#include <cuda/std/cfloat>
"""
_LIBRARY_USER = re.compile(r"#\s*include\s*[<\"](cooperative_groups|cuda/|cub/|thrust/|cute/|cutlass/|mma\.h)")


def main() -> None:
    """Read the job, compile, answer."""
    end_with_parent()
    give_way()
    job = json.load(sys.stdin)
    if os.getppid() != job["parent"]:
        sys.exit(1)
    json.dump(compiled(ctypes.CDLL(job["library"]), job), sys.stdout)


def compiled(library: ctypes.CDLL, job: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a job."""
    headers = dict.fromkeys(_HOST_HEADERS, "#pragma once\n")
    uses_library = any(_LIBRARY_USER.search(text) for text in (job["text"], *job["headers"].values()))
    headers["kf_prelude.h"] = _COMMON + (_LIBRARY_INTEGERS if uses_library else _INTEGERS)
    for name in job["dropped"]:
        # cuBLAS brings the 16-bit types along, and code relies on it.
        headers[name] = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" if "cublas" in name else "#pragma once\n"
    headers.update(job["headers"])
    program = ctypes.c_void_p()
    count = len(headers)
    names = (ctypes.c_char_p * count)(*(n.encode() for n in headers))
    texts = (ctypes.c_char_p * count)(*(t.encode() for t in headers.values()))
    library.nvrtcCreateProgram(ctypes.byref(program), job["text"].encode(), job["name"].encode(), count, texts, names)
    expressions = [e.encode() for e in job.get("expressions", ())]
    for expression in expressions:
        library.nvrtcAddNameExpression(program, expression)
    architecture = job.get("architecture", "sm_90")
    # Machine code even where nobody wants it: the assembler knows limits that the compiler does not, and is quick.
    options = [f"--gpu-architecture={architecture}", "-default-device", "--pre-include=kf_prelude.h"]
    options += ["--generate-line-info", "--ptxas-options=-v"] if "image" in job else []
    options += [] if any("std" in flag for flag in job["flags"]) else ["--std=c++17"]
    options += [f.replace("-std=", "--std=") if f.startswith("-std") else f for f in job["flags"]]
    options += [f"-D{name}={value}" for name, value in job["defines"].items()]
    options += [f"-I{folder}" for folder in job["includes"]]
    encoded = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    status = library.nvrtcCompileProgram(program, len(options), encoded)
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value or 1)
    library.nvrtcGetProgramLog(program, log)
    text = re.sub(r"\x1b\[[0-9;]*m", "", log.value.decode("utf-8", "replace"))
    answer: dict[str, Any] = {"accepted": status == 0, "log": text}
    if status == 0 and "image" in job:
        answer["names"] = [_lowered(library, program, e) for e in expressions]
        library.nvrtcGetCUBINSize(program, ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        library.nvrtcGetCUBIN(program, image)
        Path(job["image"]).write_bytes(image.raw)
    return answer


def _lowered(library: ctypes.CDLL, program: ctypes.c_void_p, expression: bytes) -> str:
    name = ctypes.c_char_p()
    library.nvrtcGetLoweredName(program, expression, ctypes.byref(name))
    return (name.value or b"").decode()


if __name__ == "__main__":
    main()
