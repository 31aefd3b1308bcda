"""What to show: pure functions from outcomes to findings, titles, hovers and reports.

Invariant: no I/O and no clock. Every text about a verdict carries its basis (``emulated``, ``measured on ...``).
"""
