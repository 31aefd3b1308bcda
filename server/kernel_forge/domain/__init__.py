"""Frozen values in the field's own words.

Invariant: nothing here reads a file, starts a process or imports another package of ours.
"""
