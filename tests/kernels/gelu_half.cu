#include <cuda_bf16.h>
#include <cuda_fp16.h>

// GELU over pairs of half, and bias + addition over bfloat16.
//
// /// kernel-forge
// kernel = "gelu_half"
// reference = { y = "0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))" }
// cases = [{ n = 2048 }, { n = 34 }]
// where = ["n % 2 == 0"]
//
// [args]
// x = { shape = ["n"] }
// y = { shape = ["n"], role = "out" }
// pairs = "n / 2"
//
// [launch]
// grid = "max(1, cdiv(n / 2, 128))"
// block = 128
// ///
__global__ void gelu_half(const half2* x, half2* y, int pairs) {
  auto gelu = [](float v) { return 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v))); };
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < pairs) {
    float2 v = __half22float2(x[i]);
    y[i] = __floats2half2_rn(gelu(v.x), gelu(v.y));
  }
}

// /// kernel-forge
// kernel = "bias_add"
// reference = { out = "a + b + bias[np.arange(n) % channels]" }
// cases = [{ n = 1200, channels = 12 }, { n = 35, channels = 5 }]
// where = ["channels > 0"]
//
// [args]
// a = { shape = ["n"] }
// b = { shape = ["n"] }
// bias = { shape = ["channels"] }
// out = { shape = ["n"], role = "out" }
//
// [launch]
// grid = "max(1, cdiv(n, 256))"
// block = 256
// ///
__global__ void bias_add(const __nv_bfloat16* a, const __nv_bfloat16* b, const __nv_bfloat16* bias, __nv_bfloat16* out,
                         int n, int channels) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = __bfloat162float(a[i]) + __bfloat162float(b[i]) + __bfloat162float(bias[i % channels]);
  out[i] = __float2bfloat16(sum);
}
