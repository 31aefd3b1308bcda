"""NVIDIA's compilers as compilers: to machine code, for a real GPU."""
