"""NVIDIA's compilers, asked for their opinion where they are installed."""
