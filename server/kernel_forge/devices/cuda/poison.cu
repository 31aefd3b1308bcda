// Fills the shared memory of a block, so that a kernel that reads what it never wrote does not find zeros by luck.

extern "C" __global__ void kf_poison_shared(unsigned word, unsigned words) {
  extern __shared__ unsigned memory[];
  volatile unsigned* cells = memory;  // nothing reads them, yet they must be written
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x) cells[i] = word;
}
