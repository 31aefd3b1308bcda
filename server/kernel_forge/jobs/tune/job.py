"""The tune job: text -> specs -> each kernel's space searched, the winner verified."""

from collections.abc import Callable

from kernel_forge.domain.event import Report
from kernel_forge.jobs.requests import Circumstances, TuneReport, TuneRequest
from kernel_forge.ports import Device, FindLedger


def tune_file(
    request: TuneRequest,
    device: Device,
    report: Report,
    find_ledger: FindLedger = lambda _: None,
    tell: Callable[[Circumstances], None] = lambda _: None,
    is_finishing: Callable[[], bool] = lambda: False,
) -> TuneReport:
    """Tune the kernels of a file that have a spec (or the one asked for)."""
    raise NotImplementedError
