"""The parts of the CUDA driver API that PyCUDA does not wrap, through ctypes: modules from memory with plain handles,
extensible launches (clusters, cooperative), graphs, and virtual memory.

Everything works in the context that is current in the calling thread.
"""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

from kernel_forge.domain.launch import Dim3

CLUSTER_ATTRIBUTE, COOPERATIVE_ATTRIBUTE = 4, 2
MAX_DYNAMIC_SHARED, NON_PORTABLE_CLUSTER = 8, 14


class CudaError(Exception):
    """A call of the driver failed. ``code`` is the CUresult, ``name`` its symbol."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({code})")
        self.call = call
        self.code = code
        self.name = name


class _Location(ctypes.Structure):
    _fields_ = (("type", c_int), ("id", c_int))


class _AllocationProperties(ctypes.Structure):
    _fields_ = (
        ("type", c_int),
        ("handle_types", c_int),
        ("location", _Location),
        ("win32", c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", c_int))


class _Attribute(ctypes.Structure):
    _fields_ = (("id", c_int), ("pad", c_int), ("value", c_uint * 16))


class _LaunchConfig(ctypes.Structure):
    _fields_ = (
        *((f"grid_{d}", c_uint) for d in "xyz"),
        *((f"block_{d}", c_uint) for d in "xyz"),
        ("shared_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(_Attribute)),
        ("attribute_count", c_uint),
    )


class DriverLibrary:
    """``libcuda`` with checked calls."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")

    def call(self, name: str, *args: object) -> None:
        """Call ``name``.

        Raises:
            CudaError: it returned anything but success.
        """
        code = getattr(self._library, name)(*args)
        if code != 0:
            text = c_char_p()
            self._library.cuGetErrorName(code, byref(text))
            raise CudaError(name, code, (text.value or b"unknown error").decode())

    def load_module(self, image: bytes) -> int:
        """The handle of a module loaded from a cubin."""
        module = c_void_p()
        self.call("cuModuleLoadData", byref(module), c_char_p(image))
        return module.value or 0

    def unload_module(self, module: int) -> None:
        """Free a module."""
        self.call("cuModuleUnload", c_void_p(module))

    def function(self, module: int, name: str) -> int:
        """The handle of a kernel by its linker name."""
        function = c_void_p()
        self.call("cuModuleGetFunction", byref(function), c_void_p(module), name.encode())
        return function.value or 0

    def symbol(self, module: int, name: str) -> tuple[int, int]:
        """Address and size in bytes of a variable by its linker name."""
        address, size = c_uint64(), c_size_t()
        self.call("cuModuleGetGlobal_v2", byref(address), byref(size), c_void_p(module), name.encode())
        return address.value, size.value

    def allow(self, function: int, shared_bytes: int, cluster: Dim3 | None) -> None:
        """Ask for more than the portable limits where a launch needs it."""
        if shared_bytes > 48 << 10:
            self.call("cuFuncSetAttribute", c_void_p(function), MAX_DYNAMIC_SHARED, shared_bytes)
        if cluster is not None and cluster[0] * cluster[1] * cluster[2] > 8:
            self.call("cuFuncSetAttribute", c_void_p(function), NON_PORTABLE_CLUSTER, 1)

    def launch(
        self,
        function: int,
        grid: Dim3,
        block: Dim3,
        shared_bytes: int,
        stream: int,
        args: Sequence[bytes],
        cluster: Dim3 | None = None,
        cooperative: bool = False,
    ) -> None:
        """Launch; ``args`` are the bytes of each parameter."""
        attributes = (_Attribute * 2)()
        count = 0
        if cluster is not None:
            attributes[count].id = CLUSTER_ATTRIBUTE
            attributes[count].value[0:3] = cluster
            count += 1
        if cooperative:
            attributes[count].id = COOPERATIVE_ATTRIBUTE
            attributes[count].value[0] = 1
            count += 1
        config = _LaunchConfig(*grid, *block, shared_bytes, c_void_p(stream), attributes, count)
        values = [ctypes.create_string_buffer(a, len(a)) for a in args]
        pointers = (c_void_p * max(1, len(values)))(*(ctypes.addressof(v) for v in values))
        self.call("cuLaunchKernelEx", byref(config), c_void_p(function), pointers, None)

    def begin_capture(self, stream: int) -> None:
        """Record what is launched on ``stream`` from now on (thread-local mode)."""
        self.call("cuStreamBeginCapture_v2", c_void_p(stream), 1)

    def end_capture(self, stream: int) -> int:
        """The executable graph of what was recorded."""
        graph, executable = c_void_p(), c_void_p()
        self.call("cuStreamEndCapture", c_void_p(stream), byref(graph))
        try:
            self.call("cuGraphInstantiateWithFlags", byref(executable), graph, c_uint64(0))
        finally:
            self.call("cuGraphDestroy", graph)
        return executable.value or 0

    def launch_graph(self, executable: int, stream: int) -> None:
        """Replay a graph."""
        self.call("cuGraphLaunch", c_void_p(executable), c_void_p(stream))

    def free_graph(self, executable: int) -> None:
        """Free an executable graph."""
        self.call("cuGraphExecDestroy", c_void_p(executable))

    def granularity(self, device: int) -> int:
        """Bytes that a mapping must be a multiple of."""
        size = c_size_t()
        self.call("cuMemGetAllocationGranularity", byref(size), byref(_properties(device)), 0)
        return size.value

    def reserve(self, size: int) -> int:
        """An address range with nothing behind it."""
        address = c_uint64()
        self.call("cuMemAddressReserve", byref(address), c_size_t(size), c_size_t(0), c_uint64(0), c_uint64(0))
        return address.value

    def free_range(self, address: int, size: int) -> None:
        """Give an address range back."""
        self.call("cuMemAddressFree", c_uint64(address), c_size_t(size))

    def map_memory(self, address: int, size: int, device: int) -> None:
        """Put device memory behind part of a reserved range; it lives until it is unmapped."""
        handle = c_uint64()
        self.call("cuMemCreate", byref(handle), c_size_t(size), byref(_properties(device)), c_uint64(0))
        try:
            self.call("cuMemMap", c_uint64(address), c_size_t(size), c_size_t(0), handle, c_uint64(0))
        finally:
            self.call("cuMemRelease", handle)  # the mapping keeps the memory alive
        access = _Access(_Location(1, device), 3)
        try:
            self.call("cuMemSetAccess", c_uint64(address), c_size_t(size), byref(access), c_size_t(1))
        except CudaError:
            self.unmap_memory(address, size)
            raise

    def unmap_memory(self, address: int, size: int) -> None:
        """Take the memory away again, which frees it."""
        self.call("cuMemUnmap", c_uint64(address), c_size_t(size))


def _properties(device: int) -> _AllocationProperties:
    return _AllocationProperties(1, 0, _Location(1, device), None)
