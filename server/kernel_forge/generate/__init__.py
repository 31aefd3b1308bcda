"""Proposes source: briefs, templates, what goes to a model, and what may come back from it.

Invariant: pure. Nothing here compiles, runs or believes a kernel; what it proposes has still to be verified.
"""
