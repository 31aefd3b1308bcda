"""The broken variants: each is one change that a person could make by mistake, and none is equivalent.

``old`` must stand exactly once in the file (or ``nth`` says which one is meant, counted from 0).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One change. ``kernel`` is the spec whose verification must fail; ``why`` explains a survivor."""

    file: str
    kernel: str
    kind: str
    old: str
    new: str
    nth: int | None = None
    why: str = ""


def _of(file: str, kernel: str, *changes: tuple[str, str, str] | tuple[str, str, str, int]) -> list[Mutant]:
    return [Mutant(file, kernel, *change) for change in changes]


MUTANTS: list[Mutant] = [
    *_of(
        "saxpy.cu",
        "saxpy",
        ("off-by-one tail", "if (i < n % 4) {", "if (i + 1 < n % 4) {"),
        ("missing bounds check", "if (i < quads) {", "if (i <= quads) {"),
        ("swapped index", "float4 v = reinterpret_cast<float4*>(y)[i];", "float4 v = reinterpret_cast<float4*>(y)[0];"),
        ("wrong value", "v.z = a * u.z + v.z;", "v.z = a * u.z + v.w;"),
        ("output not fully written", "v.w = a * u.w + v.w;", ""),
        ("int overflow in an index", "int i = blockIdx.x", "signed char i = blockIdx.x"),
        ("misaligned access", "reinterpret_cast<const float4*>(x)[i];", "*reinterpret_cast<const float4*>(x + 1 + i);"),
    ),
    *_of(
        "rms_norm.cu",
        "rms_norm",
        ("dropped barrier", "  __syncthreads();\n", ""),
        ("off-by-one tail", "c < cols; c += BLOCK) sum", "c < cols - 1; c += BLOCK) sum"),
        ("wrong warp mask", "__shfl_xor_sync(0xffffffffu, v, offset)", "__shfl_xor_sync(0x0000ffffu, v, offset)"),
        ("wrong reduction width", "int offset = 16; offset > 0", "int offset = 8; offset > 0"),
        ("wrong initial value", "float total = 0.0f;", "float total = 1.0f;"),
        ("narrow accumulator", "float sum = 0.0f;", "__nv_bfloat16 sum = 0.0f;"),
        ("missing term", "rsqrtf(total / cols + eps)", "rsqrtf(total / cols)"),
        ("reading past the end", "__ldg(w + c)", "__ldg(w + c + 1)"),
        ("race on shared memory", "partial[threadIdx.x / 32] = sum;", "partial[0] = sum;"),
        ("output not fully written", "c < cols; c += BLOCK) out", "c < cols; c += 2 * BLOCK) out"),
        ("int overflow in an index", "static_cast<size_t>(row) * cols;\n  float* out", "static_cast<unsigned char>(row * cols);\n  float* out"),
    ),
    *_of(
        "layer_norm.cu",
        "layer_norm",
        ("swapped index", "mean[row] = m;", "mean[warp.thread_rank()] = m;"),
        ("wrong value", "float d = in[c] - m;", "float d = in[c];"),
        ("missing bounds check", "if (row >= rows) return;", ""),
        ("wrong constant", "1e-5f", "1e-3f"),
        ("output not fully written", "    rstd[row] = s;\n", ""),
        ("narrow accumulator", "float squares = 0.0f;", "int squares = 0;"),
        ("wrong stride", "c += warp.size()) sum", "c += 31) sum"),
        ("wrong operand", "gamma[c] + beta[c]", "gamma[c] + beta[0]"),
    ),
    *_of(
        "softmax.cu",
        "softmax",
        ("dropped barrier", "  __syncthreads();\n  for (int stride", "  for (int stride"),
        ("dropped barrier", "    __syncthreads();\n  }\n  m =", "  }\n  m ="),
        ("wrong initial value", "float m = -INFINITY, s = 0.0f;", "float m = 0.0f, s = 0.0f;"),
        ("shared memory overlap", "scratch + blockDim.x;", "scratch + blockDim.x / 2;"),
        ("shared memory past the end", "scratch + blockDim.x;", "scratch + blockDim.x + 4;"),
        ("wrong value", "sum_a * expf(max_a - m)", "sum_a"),
        ("race on shared memory", "if (threadIdx.x < stride) {", "if (threadIdx.x <= stride) {"),
        ("output not fully written", "c < cols; c += blockDim.x) out", "c < cols - 1; c += blockDim.x) out"),
    ),
    *_of(
        "transpose.cu",
        "transpose",
        ("dropped barrier", "  __syncthreads();\n", ""),
        ("swapped index", "tile[threadIdx.x][threadIdx.y + j];", "tile[threadIdx.y + j][threadIdx.x];"),
        ("missing bounds check", "x < width && y + j < height", "x < width"),
        ("missing bounds check", "x < height && y + j < width", "x < height"),
        ("wrong stride", "(y + j) * height + x", "(y + j) * width + x"),
        ("output not fully written", "j < kTile; j += kRows) {\n    if (x < height", "j < kTile / 2; j += kRows) {\n    if (x < height"),
    ),
    *_of(
        "matmul.cu",
        "matmul",
        ("dropped barrier", "    __syncthreads();\n", "", 0),
        ("dropped barrier", "    __syncthreads();\n", "", 1),
        ("off-by-one tail", "k0 < K; k0 += TILE", "k0 + TILE <= K; k0 += TILE"),
        ("missing bounds check", "row < M && k0 + threadIdx.x < K ? A", "row < M ? A"),
        ("missing bounds check", "if (row < M && col < N) C", "if (row < M) C"),
        ("swapped index", "b[k][threadIdx.x];", "b[threadIdx.x][k];"),
        ("wrong initial value", "float sum = 0.0f;\n  for (int k0", "float sum = 1e-3f;\n  for (int k0"),
        ("narrow accumulator", "float sum = 0.0f;\n  for (int k0", "half sum = 0.0f;\n  for (int k0"),
    ),
    *_of(
        "matmul.cu",
        "matmul_half",
        ("narrow accumulator", "float sum = 0.0f;\n  for (int k = 0; k < K / 2", "half sum = 0.0f;\n  for (int k = 0; k < K / 2"),
        ("swapped index", "B[(2 * k + 1) * N + col]", "B[(2 * k) * N + col]"),
        ("reading past the end", "k < K / 2; ++k", "k <= K / 2; ++k"),
    ),
    *_of(
        "reduce.cu",
        "partial_sums",
        ("dropped barrier", "  __syncthreads();\n  v =", "  v ="),
        ("wrong stride", "i += gridDim.x * blockDim.x) sum", "i += blockDim.x) sum"),
        ("wrong initial value", ": 0.0f;\n  if (threadIdx.x < warpSize)", ": 1.0f;\n  if (threadIdx.x < warpSize)"),
        ("race on global memory", "partial[blockIdx.x] = sum;", "partial[0] = sum;"),
        ("narrow accumulator", "  float sum = 0.0f;\n  for (int i = blockIdx.x", "  int sum = 0;\n  for (int i = blockIdx.x"),
        ("wrong warp mask", "if (threadIdx.x < warpSize) {", "if (threadIdx.x < warpSize / 2) {"),
        ("output not written", "if (threadIdx.x == 0) total[0] = sum;", "if (threadIdx.x == blockDim.x) total[0] = sum;"),
        ("dropped last element", "i < n; i += gridDim.x * blockDim.x) sum", "i < n - 1; i += gridDim.x * blockDim.x) sum"),
    ),
    *_of(
        "reduce.cu",
        "tree_sum",
        ("narrow accumulator", "  T sum = 0;\n", "  float sum = 0;\n"),
        ("dropped barrier", "    __syncthreads();\n  }\n  if (threadIdx.x == 0) *out", "  }\n  if (threadIdx.x == 0) *out"),
        ("divergent barrier", "    if (threadIdx.x < stride) values[threadIdx.x] += values[threadIdx.x + stride];\n    __syncthreads();",
         "    if (threadIdx.x < stride) {\n      values[threadIdx.x] += values[threadIdx.x + stride];\n      __syncthreads();\n    } else {\n      __syncthreads();\n    }"),
    ),
    *_of(
        "scan.cu",
        "scan_blocks",
        ("dropped barrier", "  __syncthreads();\n  int before", "  int before"),
        ("wrong comparison", "if (lane >= offset) value", "if (lane > offset) value"),
        ("wrong lane", "if (lane == 31) warp_sums", "if (lane == 0) warp_sums"),
        ("off-by-one", "sums[blockIdx.x - 1];", "sums[blockIdx.x];"),
        ("missing bounds check", "if (threadIdx.x < count) sums[threadIdx.x] = value;", "sums[threadIdx.x] = value;"),
        ("narrow accumulator", "int before = 0;", "signed char before = 0;"),
    ),
    *_of(
        "histogram.cu",
        "histogram",
        ("dropped barrier", "  __syncthreads();\n  for (int i", "  for (int i"),
        ("dropped barrier", "  __syncthreads();\n  for (int b", "  for (int b"),
        ("wrong initial value", "local[b] = 0;", "local[b] = 1;"),
        ("output not fully written", "b < bins; b += blockDim.x) {", "b < bins - 1; b += blockDim.x) {"),
        ("lost update", "if (threadIdx.x % 32 == 0) atomicMax", "if (threadIdx.x == 0) atomicMax"),
        ("uninitialised shared memory", "b < bins; b += blockDim.x) local", "b < bins / 2; b += blockDim.x) local"),
    ),
    Mutant(
        "histogram.cu",
        "histogram",
        "atomic replaced by plain add",
        "atomicAdd(&counts[b], local[b]);",
        "counts[b] += local[b];",
    ),
    *_of(
        "convolution.cu",
        "filter2d",
        ("dropped barrier", "  __syncthreads();\n", ""),
        ("missing bounds check", "x >= 0 && x < width && y", "x < width && y"),
        ("swapped index", "coefficients[j * (2 * RADIUS + 1) + i]", "coefficients[i * (2 * RADIUS + 1) + j]"),
        ("off-by-one", "i <= 2 * RADIUS; ++i", "i < 2 * RADIUS; ++i"),
        ("missing bounds check", "if (x >= width || y >= height) return;", "if (x >= width) return;"),
        ("wrong halo", "ty < 8 + 2 * RADIUS; ty += 8", "ty < 8; ty += 8"),
    ),
    *_of(
        "gelu_half.cu",
        "gelu_half",
        ("swapped index", "gelu(v.x), gelu(v.y)", "gelu(v.y), gelu(v.x)"),
        ("missing bounds check", "if (i < pairs) {", "if (i <= pairs) {"),
        ("wrong constant", "0.044715f", "0.0447f * 2"),
    ),
    *_of(
        "gelu_half.cu",
        "bias_add",
        ("wrong index", "bias[i % channels]", "bias[i / channels % channels]"),
        ("missing bounds check", "if (i >= n) return;\n  float sum", "float sum"),
    ),
    *_of("gather.cu", "gather", ("reading past the end", "y[i] = x[index[i]];", "y[i] = x[index[i] + 1];"), ("output not written", "if (i < n) y[i]", "if (i < n - 1) y[i]")),
    *_of("gather.cu", "scatter", ("swapped index", "y[index[i]] = x[i];", "y[i] = x[index[i]];")),
    *_of(
        "argmax.cu",
        "argmax",
        ("wrong initial value", "float value = -FLT_MAX;", "float value = 0.0f;"),
        ("wrong tie", "other_place < place", "other_place > place"),
        ("wrong width", "int offset = 16; offset > 0", "int offset = 16; offset > 1"),
        ("mismatched shuffle", "__shfl_down_sync(0xffffffffu, place, offset)", "__shfl_down_sync(0xffffffffu, place, 1)"),
    ),
    *_of(
        "compact.cu",
        "compact",
        ("dropped barrier", "  __syncthreads();\n  if (keep)", "  if (keep)"),
        ("wrong mask", "(1u << lane) - 1", "(2u << lane) - 1"),
        ("missing bounds check", "bool keep = i < n && x[i] > 0;", "bool keep = x[i] > 0;"),
        ("wrong vote", "__syncthreads_and(keep || i >= n)", "__syncthreads_and(keep)"),
    ),
    *_of(
        "extremes.cu",
        "extremes",
        ("atomic replaced by plain add", "atomicAdd(sum, static_cast<double>(x[i]));", "*sum += static_cast<double>(x[i]);"),
        ("wrong warp mask", "__match_any_sync(active, keys[i])", "__match_any_sync(0xffffffffu >> 1, keys[i])"),
        ("narrow accumulator", "atomicAdd(sum, static_cast<double>(x[i]));", "atomicAdd(sum, static_cast<double>(static_cast<int>(x[i])));"),
        ("lost update", "    if (seen == old) break;\n", "    break;\n"),
    ),
    *_of(
        "moments.cu",
        "combine",
        ("streams that do not wait", '// grid = "cdiv(rows, 64)"', '// stream = "third"\n// grid = "cdiv(rows, 64)"'),
        ("wrong value", "squares[row] / columns - m * m", "squares[row] / columns - m"),
        ("missing term", "int offset = 16;", "int offset = 8;"),
        ("off-by-one", "c < columns; c += 32) total += x[row * columns + c];", "c < columns - 1; c += 32) total += x[row * columns + c];"),
    ),
    *_of(
        "jacobi.cu",
        "jacobi",
        ("dropped grid barrier", "    grid.sync();\n", ""),
        ("block barrier for a grid barrier", "    grid.sync();\n", "    __syncthreads();\n"),
        ("off-by-one", "i < n - 1 ? from[i + 1]", "i < n ? from[i + 1]"),
        ("missing copy", "if (from != a) {", "if (from == nullptr) {"),
    ),
    *_of(
        "stencil3d.cu",
        "stencil",
        ("missing bounds check", "if (x > 0) sum += __ldg(&u[i - 1]);", "sum += __ldg(&u[i - 1]);"),
        ("off-by-one", "if (z < nz - 1) sum", "if (z < nz - 2) sum"),
        ("swapped index", "int plane = ny * nx, i = z * plane + y * nx + x;", "int plane = ny * nx, i = z * plane + x * ny + y;"),
        ("int overflow in an index", "int plane = ny * nx, i = z", "signed char plane = ny * nx; int i = z"),
    ),
    *_of(
        "rotate.cu",
        "rotate",
        ("missing half texel", "float x = column + 0.5f", "float x = column"),
        ("wrong sign", "cosine * y - sine * x", "cosine * y + sine * x"),
        ("swapped coordinates", "tex2D<float>(image, u, v)", "tex2D<float>(image, v, u)"),
        ("missing bounds check", "if (column >= width || row >= height) return;", "if (row >= height) return;"),
    ),
    *_of(
        "rotate.cu",
        "colour",
        ("off-by-one", "tex1Dfetch<float4>(palette, pixels[i]);", "tex1Dfetch<float4>(palette, pixels[i] + 1);"),
        ("output not fully written", "if (i < n) out[i]", "if (i < n - 1) out[i]"),
    ),
    *_of(
        "cross_entropy.cu",
        "cross_entropy",
        ("wrong value", "in[c] - largest)", "in[c])"),
        ("wrong initial value", "double sum = 0.0;", "double sum = 1.0;"),
        ("off-by-one", "int c = 0; c < classes", "int c = 1; c < classes"),
        ("missing bounds check", "if (row >= rows) return;", "if (row > rows) return;"),
        ("endless loop", "for (int c = 1; c < classes; ++c) largest", "for (int c = 1; c < classes; c = c) largest"),
    ),
]  # fmt: skip
