#include <cuda_runtime.h>

// An image turned about its middle: the texture unit blends pixels, and what lies outside is black.

// /// kernel-forge
// kernel = "rotate"
// reference = { out = "rotate.py:rotate" }
// cases = [{ height = 60, width = 85 }, { height = 7, width = 3 }]
//
// [args]
// image = { shape = ["height", "width"], dtype = "float", texture = { filter = "linear", address = "border" } }
// out = { shape = ["height", "width"], role = "out" }
// sine = 0.6
// cosine = 0.8
//
// [launch]
// grid = ["cdiv(width, 16)", "cdiv(height, 8)"]
// block = [16, 8]
// ///
__global__ void rotate(cudaTextureObject_t image, float* out, int height, int width, float sine, float cosine) {
  int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  if (column >= width || row >= height) return;
  float x = column + 0.5f - 0.5f * width, y = row + 0.5f - 0.5f * height;
  float u = cosine * x + sine * y + 0.5f * width;
  float v = cosine * y - sine * x + 0.5f * height;
  out[row * width + column] = tex2D<float>(image, u, v);
}

// Pixels by number to colours of a palette in linear memory.

// /// kernel-forge
// kernel = "colour"
// reference = { out = "palette[pixels]" }
// cases = [{ n = 1000 }]
//
// [args]
// palette = { shape = [256], dtype = "float4", texture = { memory = "linear" } }
// pixels = { shape = ["n"], init = { kind = "integers", low = 0, high = 256 } }
// out = { shape = ["n", 4], role = "out" }
//
// [launch]
// grid = "cdiv(n, 128)"
// block = 128
// ///
__global__ void colour(cudaTextureObject_t palette, const unsigned char* pixels, float4* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1Dfetch<float4>(palette, pixels[i]);
}

cudaTextureObject_t make_palette(const float4* colours) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = const_cast<float4*>(colours);
  resource.res.linear.desc = cudaCreateChannelDesc<float4>();
  resource.res.linear.sizeInBytes = 256 * sizeof(float4);
  cudaTextureDesc description = {};
  description.readMode = cudaReadModeElementType;
  cudaTextureObject_t palette = 0;
  cudaCreateTextureObject(&palette, &resource, &description, nullptr);
  return palette;
}
