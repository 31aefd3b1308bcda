// Cross-entropy of rows of logits against a target class; the spec stands beside, in cross_entropy.forge.toml.
__global__ void cross_entropy(const float* logits, const int* target, float* loss, int rows, int classes) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* in = logits + row * classes;
  float largest = in[0];
  for (int c = 1; c < classes; ++c) largest = fmaxf(largest, in[c]);
  double sum = 0.0;
  for (int c = 0; c < classes; ++c) sum += exp(static_cast<double>(in[c] - largest));
  loss[row] = static_cast<float>(log(sum)) - (in[target[row]] - largest);
}
