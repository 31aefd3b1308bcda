"""Contracts that several tests share, and honest kernels for them."""

from typing import Any

import ml_dtypes
import numpy as np

Flat = np.ndarray[tuple[int, ...], np.dtype[Any]]

SUM = (
    "const float* x, float* y, int n",
    'cases = [{ n = %d }]\nreference = { y = "np.sum(x)" }\n\n[args]\nx = { shape = ["n"] }\n'
    'y = { shape = [1], role = "out" }',
)
SCALE = (
    "const float* x, float* y, int n",
    'cases = [{ n = 100 }]\nreference = { y = "2.5 * x" }\n\n[args]\nx = { shape = ["n"] }\n'
    'y = { shape = ["n"], role = "out" }',
)
SUM_DOUBLE = (SUM[0].replace("float", "double"), SUM[1])
ROWS = (
    "const float* x, float* y, int rows, int cols",
    'cases = [{ rows = 6, cols = 100 }]\nwhere = ["cols > 0"]\nreference = { y = "%s" }\n\n[args]\n'
    'x = { shape = ["rows", "cols"] }\ny = { shape = ["rows", "cols"], role = "out" }',
)
SOFTMAX = (
    "np.exp(x - x.max(axis=1, keepdims=True)) / np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)"
)
LAYER_NORM = "(x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)"
GELU = "0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))"


def sequential(terms: Flat, dtype: Any = np.float32) -> Any:
    """One accumulator, one term after the other."""
    return np.add.accumulate(terms.astype(dtype), dtype=dtype)[-1] if terms.size else dtype(0)


def sum_of(x: Flat, y: Flat, n: int) -> None:
    y[0] = sequential(x)


def sequential_rows(terms: Flat) -> Flat:
    """Like :func:`sequential`, for every row at once."""
    return np.add.accumulate(terms, axis=1, dtype=np.float32)[:, -1:]


def softmax(x: Flat, y: Flat, rows: int, cols: int) -> None:
    m = x.reshape(rows, cols)
    e = np.exp(m - m.max(axis=1, keepdims=True, initial=-np.inf))
    y[:] = (e * (np.float32(1) / sequential_rows(e))).reshape(-1)


def two_pass(x: Flat, y: Flat, rows: int, cols: int) -> None:
    m = x.reshape(rows, cols)
    d = m - sequential_rows(m) / np.float32(cols)
    y[:] = (d / np.sqrt(sequential_rows(d * d) / np.float32(cols) + np.float32(1e-5))).reshape(-1)


def one_pass(x: Flat, y: Flat, rows: int, cols: int) -> None:
    m = x.reshape(rows, cols)
    mean = sequential_rows(m) / np.float32(cols)
    variance = np.maximum(sequential_rows(m * m) / np.float32(cols) - mean * mean, np.float32(0))
    y[:] = ((m - mean) / np.sqrt(variance + np.float32(1e-5))).reshape(-1)


def gelu(x: Flat, y: Flat, rows: int, cols: int) -> None:
    f = np.float32
    y[:] = f(0.5) * x * (f(1) + np.tanh(f(0.7978845608) * (x + f(0.044715) * x * x * x)))


def gelu_by_exp(x: Flat, y: Flat, rows: int, cols: int) -> None:
    """x * sigmoid(2u): the same function, written otherwise."""
    f = np.float32
    u = f(0.7978845608) * (x + f(0.044715) * x * x * x)
    y[:] = x / (f(1) + np.exp(f(-2) * u))


def bfloat16(x: Flat) -> Flat:
    return x.astype(ml_dtypes.bfloat16).astype(np.float32)
