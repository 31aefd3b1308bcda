"""The tune job: text -> specs -> each kernel tuned."""

from collections.abc import Callable

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.event import Report
from kernel_forge.domain.tuning import KernelTuning, in_order
from kernel_forge.jobs.circumstances import circumstances
from kernel_forge.jobs.compile_options import options_of
from kernel_forge.jobs.configurations import chosen_sizes, fixed_tunables
from kernel_forge.jobs.requests import Circumstances, TuneReport, TuneRequest
from kernel_forge.jobs.tune.kernel import KernelTuner
from kernel_forge.ports import Device, FindLedger
from kernel_forge.search import SAMPLERS
from kernel_forge.source import parse
from kernel_forge.spec import read_specs
from kernel_forge.verify import master_seed


def tune_file(
    request: TuneRequest,
    device: Device,
    report: Report,
    find_ledger: FindLedger = lambda _: None,
    tell: Callable[[Circumstances], None] = lambda _: None,
    is_finishing: Callable[[], bool] = lambda: False,
) -> TuneReport:
    """Tune the kernels of a file that have a spec with tunables (or the one asked for).

    ``tell`` gets what is about to be run; each search is written into the ledger while it runs, and goes on with an
    unfinished one found there. ``is_finishing`` tells that somebody wants the result of what was tried so far.

    Raises:
        SourceError: the text is no CUDA text at all.
        UsageError: nothing to tune, an empty space, sizes or values that the spec does not have, an unknown sampler.
    """
    if request.sampler not in SAMPLERS:
        raise UsageError(f"there is no sampler {request.sampler} (samplers: {', '.join(SAMPLERS)})")
    source = parse(request.text, request.path)
    reading = read_specs(source, request.sidecar)
    asked = [spec for spec in reading.specs if request.kernel is None or spec.kernel == request.kernel]
    wanted = [spec for spec in asked if spec.tunables]
    if asked and not wanted:
        names = ", ".join(spec.kernel for spec in asked)
        raise UsageError(f"{names}: no [tune] table in the spec, so there is nothing to tune")
    fixed = [fixed_tunables(spec, request.configuration) for spec in wanted]
    cases = [tuple(chosen_sizes(s, c) for c in request.cases) or (dict(s.cases[0]),) for s in wanted]
    options = options_of(request)
    seed = master_seed(request.seed)
    defaults = [{**spec.default_configuration, **own} for spec, own in zip(wanted, fixed, strict=True)]
    undertaken = [(spec, default, seed) for spec, default in zip(wanted, defaults, strict=True)]
    told = circumstances(request, source, device.info(), options, undertaken)
    tell(told)
    ledger = find_ledger(request.path)
    results = []
    for spec, own, sizes, undertaking in zip(wanted, fixed, cases, told.undertakings, strict=True):
        tuner = KernelTuner(request, spec, source, device, options, report, is_finishing, ledger, own, sizes)
        result = tuner.tune(undertaking.subject, told.platform, seed)
        results.append(in_order(result) if isinstance(result, KernelTuning) else result)
    return TuneReport(reading.problems, tuple(results))
