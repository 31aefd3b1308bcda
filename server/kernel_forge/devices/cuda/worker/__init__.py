"""The process that owns a GPU: ``kernel-forge worker --gpu N``. The only importer of PyCUDA."""

from kernel_forge.devices.cuda.worker.serving import serve

__all__ = ["serve"]
