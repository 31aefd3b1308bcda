"""What of NumPy a reference expression may use: what computes, nothing that reads files or imports."""

FUNCTIONS = frozenset(
    """
    abs absolute add all amax amin any arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin
    argpartition argsort around array array_equal asarray atleast_1d atleast_2d average bincount bitwise_and
    bitwise_or bitwise_xor bool_ broadcast_to cbrt ceil clip column_stack concatenate convolve copysign correlate
    cos cosh count_nonzero cross cumprod cumsum deg2rad diag diagonal diff digitize divide dot einsum empty_like
    equal exp exp2 expand_dims expm1 eye fabs flatnonzero flip fliplr flipud float16 float32 float64 floor
    floor_divide fmax fmin fmod full full_like gcd greater greater_equal heaviside histogram hstack hypot identity
    inner int16 int32 int64 int8 interp invert isfinite isin isinf isnan kron lcm ldexp left_shift less less_equal
    linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul max maximum mean
    median meshgrid min minimum mod moveaxis multiply nan_to_num nanmax nanmin nansum negative newaxis nonzero
    not_equal ones ones_like outer pad partition power prod ptp quantile rad2deg ravel reciprocal remainder repeat
    reshape right_shift rint roll rollaxis round searchsorted select sign sinc sin sinh sort sqrt square squeeze
    stack std subtract sum swapaxes take take_along_axis tan tanh tensordot tile trace transpose trapezoid tri
    tril triu true_divide trunc uint16 uint32 uint64 uint8 unique var vdot vecdot vstack where zeros zeros_like
    inf nan pi e
    """.split()
)
METHODS = frozenset(
    """
    all any argmax argmin argsort astype clip copy cumprod cumsum diagonal dot flatten imag max mean min ndim
    nonzero prod ptp ravel real repeat reshape round searchsorted shape size sort squeeze std sum swapaxes T take
    trace transpose var view
    """.split()
)
UFUNC_METHODS = frozenset({"accumulate", "reduce", "outer", "at", "reduceat"})
NUMPY_NAMES = frozenset({"np", "numpy", "math"})
NAMESPACES = {"fft", "linalg"}
SUBMODULES = {
    ("linalg", "norm"),
    ("linalg", "inv"),
    ("linalg", "det"),
    ("linalg", "solve"),
    ("fft", "fft"),
    ("fft", "ifft"),
    ("fft", "rfft"),
}
