"""Element types a kernel argument can have, and their NumPy counterparts."""

from enum import Enum

import numpy as np


class DType(Enum):
    """An element type; ``value`` is the name used in spec blocks and records."""

    BOOL = "bool"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    UINT64 = "uint64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype (bfloat16 through ``ml_dtypes``)."""
        if self is DType.BFLOAT16:
            # Here, not above: loading ml_dtypes takes longer than all the rest of the language server's start.
            import ml_dtypes

            bfloat16: np.dtype[np.generic] = np.dtype(ml_dtypes.bfloat16)
            return bfloat16
        dtype: np.dtype[np.generic] = np.dtype(self.value)
        return dtype

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.numpy.itemsize

    @property
    def is_float(self) -> bool:
        """Whether values are rounded, so that comparison needs a tolerance."""
        return self in _UNIT_ROUNDOFF

    @property
    def unit_roundoff(self) -> float:
        """u = 2^-p with p significand bits (IEEE 754-2019 table 3.5; bfloat16 has p = 8).

        Raises:
            ValueError: for integer types, which do not round.
        """
        try:
            return _UNIT_ROUNDOFF[self]
        except KeyError:
            raise ValueError(f"{self.value} does not round") from None


_UNIT_ROUNDOFF = {
    DType.FLOAT16: 2.0**-11,
    DType.BFLOAT16: 2.0**-8,
    DType.FLOAT32: 2.0**-24,
    DType.FLOAT64: 2.0**-53,
}
