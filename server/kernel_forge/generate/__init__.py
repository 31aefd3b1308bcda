"""Proposes kernels; believes nothing of them.

Invariant: pure but for reading files that ship with the package; compiles nothing, runs nothing, asks no model itself.
"""
