"""The GPU of this process: its context and what it is."""

import pycuda
import pycuda.driver as cuda

from kernel_forge.devices.cuda.worker.driver_library import DriverLibrary

_FACTS = {
    "multiprocessors": "MULTIPROCESSOR_COUNT",
    "l2_bytes": "L2_CACHE_SIZE",
    "max_threads_per_block": "MAX_THREADS_PER_BLOCK",
    "max_threads_per_multiprocessor": "MAX_THREADS_PER_MULTIPROCESSOR",
    "max_blocks_per_multiprocessor": "MAX_BLOCKS_PER_MULTIPROCESSOR",
    "registers_per_multiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "registers_per_block": "MAX_REGISTERS_PER_BLOCK",
    "shared_bytes_per_block": "MAX_SHARED_MEMORY_PER_BLOCK",
    "shared_bytes_per_block_opt_in": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "shared_bytes_per_multiprocessor": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "warp_size": "WARP_SIZE",
    "clock_khz": "CLOCK_RATE",
    "memory_clock_khz": "MEMORY_CLOCK_RATE",
    "memory_bus_bits": "GLOBAL_MEMORY_BUS_WIDTH",
}


class Gpu:
    """One device with a context current in the constructing thread; use it from that thread only.

    Raises:
        pycuda.driver.Error: there is no driver, or no device of that number.
    """

    def __init__(self, ordinal: int) -> None:
        cuda.init()
        self.ordinal = ordinal
        self.device = cuda.Device(ordinal)
        self.context = self.device.make_context()
        self.library = DriverLibrary()
        self.stream = cuda.Stream()
        self._named: dict[str, cuda.Stream] = {}

    def named_stream(self, name: str) -> cuda.Stream:
        """A stream beside :attr:`stream`, the same one for the same name."""
        if name not in self._named:
            self._named[name] = cuda.Stream()
        return self._named[name]

    @property
    def pci_bus(self) -> str:
        """Where it is, by which other libraries know it too."""
        return str(self.device.pci_bus_id())

    @property
    def multiprocessors(self) -> int:
        """How many there are."""
        return int(self.device.get_attribute(cuda.device_attribute.MULTIPROCESSOR_COUNT))

    @property
    def most_shared_bytes(self) -> int:
        """Shared memory that one block can have at most."""
        return int(self.device.get_attribute(cuda.device_attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))

    @property
    def l2_bytes(self) -> int:
        """Size of the level-2 cache."""
        return int(self.device.get_attribute(cuda.device_attribute.L2_CACHE_SIZE))

    def free_bytes(self) -> int:
        """Device memory that can still be allocated."""
        free, _ = cuda.mem_get_info()
        return int(free)

    def facts(self) -> dict[str, int | str]:
        """What ``kernel-forge devices`` shows and the search builds on; sizes in bytes, clocks in kHz."""
        major, minor = self.device.compute_capability()
        version = cuda.get_driver_version()
        facts: dict[str, int | str] = {
            "name": self.device.name(),
            "capability": f"{major}.{minor}",
            "pci_bus": self.pci_bus,
            "memory_bytes": self.device.total_memory(),
            "driver_cuda": f"{version // 1000}.{version % 1000 // 10}",
            "pycuda": pycuda.VERSION_TEXT,
        }
        for name, attribute in _FACTS.items():
            number = getattr(cuda.device_attribute, attribute, None)
            if number is not None:
                facts[name] = int(self.device.get_attribute(number))
        return facts
