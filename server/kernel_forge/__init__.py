"""Kernel Forge: generate, autotune and verify CUDA kernels from the editor.

The folders are the pipeline; ``server/ARCHITECTURE.md`` states what each layer may know.
"""

__version__ = "0.1.0"
