"""NVIDIA GPUs through PyCUDA in a process of its own."""

from kernel_forge.devices.cuda.device import CudaDevice, local_worker

__all__ = ["CudaDevice", "local_worker"]
