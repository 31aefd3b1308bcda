"""Arguments to commands."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from kernel_forge import __version__
from kernel_forge.cli.exit_codes import FAULT, GOOD, INTERRUPTED, UNAVAILABLE, WRONG_USE
from kernel_forge.cli.faults import faults_are_ours
from kernel_forge.cli.options import count, evaluations, folder, limit, seconds, seed
from kernel_forge.cli.output import may_be_closed, prepare_streams, warn
from kernel_forge.domain.errors import DeviceUnavailable, InternalError, UsageError
from kernel_forge.domain.recorded_space import RecordedSpace
from kernel_forge.ports import Device, FindLedger, Ledger


class Adapters(NamedTuple):
    """What the commands ask of the outside world.

    Attributes:
        find_device: a device by its name; raises DeviceUnavailable for an unknown one.
        device_names: the devices that can be named.
        serve_editor: a language server on stdio, or on a TCP address.
        ledger_of: the ledger of the project that a file or folder belongs to, to read.
        find_ledger: the same to record runs in; None where nothing is to be recorded.
        read_recorded_space: the recorded search space in a file.
    """

    find_device: Callable[[str], Device]
    device_names: Callable[[], Sequence[str]]
    serve_editor: Callable[[tuple[str, int] | None], None]
    ledger_of: Callable[[str], Ledger]
    find_ledger: FindLedger
    read_recorded_space: Callable[[Path], RecordedSpace]


def run(arguments: Sequence[str], adapters: Adapters) -> int:
    """Run one command and return its exit code."""
    prepare_streams()
    try:
        options = _options(arguments)
        if isinstance(options, int):
            return options
        with faults_are_ours():
            return _dispatch(options, adapters)
    except UsageError as error:
        warn(str(error))
        return WRONG_USE
    except DeviceUnavailable as error:
        warn(str(error))
        return UNAVAILABLE
    except InternalError as error:
        warn(f"{error}\nThis is a fault of Kernel Forge, not of your kernel.")
        return FAULT
    except KeyboardInterrupt:
        warn("interrupted")
        return INTERRUPTED


def _options(arguments: Sequence[str]) -> argparse.Namespace | int:
    """The options, or the exit code where the parser has said all there is to say."""
    try:
        with may_be_closed():
            return _parser().parse_args(arguments)
    except SystemExit as stop:
        with may_be_closed():
            pass  # what was printed shall arrive now, or fail here
        return int(stop.code or 0)


def _dispatch(options: argparse.Namespace, adapters: Adapters) -> int:
    match options.command:
        case "verify":
            from kernel_forge.cli.verify import verify_command

            return verify_command(options, adapters.find_ledger)
        case "time":
            from kernel_forge.cli.time import time_command

            return time_command(options, adapters.find_ledger)
        case "tune":
            from kernel_forge.cli.tune import tune_command

            return tune_command(options, adapters.find_ledger)
        case "devices":
            from kernel_forge.cli.devices import devices_command

            return devices_command(options, [adapters.find_device(name) for name in adapters.device_names()])
        case "simulate":
            from kernel_forge.cli.simulate import simulate_command

            return simulate_command(options, adapters.read_recorded_space)
        case "spec":
            from kernel_forge.cli.spec import spec_command

            return spec_command(options)
        case "history":
            from kernel_forge.cli.history import history_command

            return history_command(options, adapters.ledger_of)
        case "audit":
            from kernel_forge.cli.audit import audit_command

            return audit_command(options, adapters.ledger_of)
        case "kb":
            from kernel_forge.cli.kb import kb_command

            return kb_command(options)
        case "schema":
            from kernel_forge.cli.spec import schema_command

            return schema_command()
        case _:
            adapters.serve_editor(_address(options.tcp) if options.tcp else None)
            return GOOD


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"--tcp {text}: write HOST:PORT, for example 127.0.0.1:2087")
    return host or "127.0.0.1", int(port)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kernel-forge",
        description="Verify and tune CUDA kernels against their spec.",
        epilog="kernel-forge worker --gpu N serves a GPU of this machine on standard input and output: name such a "
        "command in the configuration to reach it from elsewhere (README, A GPU).",
    )
    parser.add_argument("--version", action="version", version=f"kernel-forge {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    verify = commands.add_parser(
        "verify",
        help="differential verification of the kernels of a file",
        description="Checks each kernel at one configuration of its tunables, the default or that of --set; the "
        "verdict names it.",
    )
    _add_job_options(verify, device="auto", setting="value of a tunable: checks that configuration, not the default")
    verify.add_argument(
        "--sanitize", action="store_true", help="also run a few cases under compute-sanitizer (on a GPU)"
    )
    verify.add_argument("--quiet", action="store_true", help="print failures only")
    time = commands.add_parser("time", help="how long the kernels of a file take on a GPU, checked at the case first")
    _add_job_options(time, device="cuda")
    time.add_argument("--size", action="append", default=[], metavar="NAME=VALUE", help="instead of the first case's")
    time.add_argument("--budget", type=seconds, default=2.0, metavar="S", help="seconds of measuring for one kernel")
    time.add_argument("--profile", action="store_true", help="hardware counters as well, where ncu may read them")
    time.add_argument("--warm", action="store_true", help="let the caches keep the data from one execution to the next")
    _add_tune_command(commands)
    devices = commands.add_parser("devices", help="where kernels can run, and why not")
    devices.add_argument("--json", action="store_true", help="print JSON")
    simulate = commands.add_parser("simulate", help="search a recorded space (a Kernel Tuner cache file, T4 results)")
    simulate.add_argument("space", metavar="SPACE.json[.gz]")
    simulate.add_argument("--sampler", default="portfolio", metavar="NAME", help="what searches (default: portfolio)")
    simulate.add_argument(
        "--budget", type=evaluations, default=100, metavar="N", help="evaluations, failed ones too (default: 100)"
    )
    simulate.add_argument(
        "--repeats", type=count, default=10, metavar="R", help="searches, with seeds S, S + 1, ... (default: 10)"
    )
    simulate.add_argument("--seed", type=seed, default=0, metavar="S", help="of the first search (default: 0)")
    simulate.add_argument("--json", action="store_true", help="print one JSON report (schema 1) instead of text")
    spec = commands.add_parser("spec", help="draft a spec block from the code")
    spec.add_argument("target", metavar="FILE:KERNEL")
    spec.add_argument("--write", action="store_true", help="insert it into the file")
    _add_ledger_commands(commands)
    _add_kb_command(commands)
    commands.add_parser("schema", help="print the JSON schema of spec blocks")
    serve = commands.add_parser("serve", help="language server on stdio")
    serve.add_argument("--tcp", metavar="HOST:PORT", help="listen there instead")
    serve.add_argument("--stdio", action="store_true", help="the default, accepted for editors that pass it")
    return parser


def _add_tune_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    tune = commands.add_parser(
        "tune",
        help="search the tunable parameters of the kernels of a file",
        description="Searches the values of the [tune] tables, verifies the best in full, and times it against the "
        "default. Interrupted once, it ends with the best so far; killed, the same command goes on.",
    )
    _add_job_options(
        tune,
        device="auto",
        setting="fix a tunable: it is not searched",
        limited="seconds for the full verification of one configuration (--budget limits the search)",
    )
    tune.add_argument(
        "--budget",
        action="append",
        default=[],
        metavar="B",
        help="when the search ends: 200 (trials), 90s, 5m or 1h (time), patience=30 (trials without a new best). Given "
        "several times, whatever comes first; what is not named is no limit. Without it: 100 trials or 60s",
    )
    tune.add_argument("--sampler", default="portfolio", metavar="NAME", help="what searches (default: portfolio)")
    tune.add_argument("--size", action="append", default=[], metavar="NAME=VALUE", help="instead of the first case's")
    tune.add_argument(
        "--case",
        action="append",
        default=[],
        metavar="n=1024,m=64",
        help="sizes to tune for, those not named as in the first case; given several times, several cases at once",
    )
    tune.add_argument("--all-cases", action="store_true", help="tune for all cases of the spec at once")
    tune.add_argument(
        "--apply", action="store_true", help="write the winner into the file, where it is faster for sure"
    )
    tune.add_argument(
        "--apply-emulated",
        action="store_true",
        help="let --apply write what the emulator chose as well; its CPU times do not rank configurations for a GPU",
    )
    tune.add_argument("--selector", metavar="FILE.h", help="write C++ that chooses by size, where cases are several")
    tune.add_argument("--fresh", action="store_true", help="begin anew, although an unfinished search is recorded")
    tune.add_argument("--energy", action="store_true", help="measure the energy of the finalists, where the GPU can")


def _add_ledger_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    history = commands.add_parser("history", help="the runs that were recorded, the newest first")
    history.add_argument(
        "what", nargs="?", metavar="FILE[:KERNEL] | KERNEL | RUN", help="of these only; or one run in full"
    )
    history.add_argument("--limit", type=limit, default=20, metavar="N", help="at most N runs (20; 0: all)")
    audit = commands.add_parser("audit", help="whether the recorded runs are as they were written")
    audit.add_argument("--anchor", metavar="FILE", help="compare with the anchor in FILE, exported earlier")
    audit.add_argument("--export-anchor", metavar="FILE", help="write an anchor to FILE, to be kept elsewhere")
    for parser in (history, audit):
        parser.add_argument("--project", type=folder, default=".", metavar="DIR", help="a folder of the project")
        parser.add_argument("--json", action="store_true", help="print JSON (schema 1)")


def _add_kb_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    kb = commands.add_parser("kb", help="the knowledge base: patterns of fast kernels, pages of the KF codes")
    actions = kb.add_subparsers(dest="action", required=True)
    search = actions.add_parser("search", help="pages on patterns that fit some words, the best first")
    search.add_argument("words", nargs="*", metavar="WORDS", help="what to look for; without any, all pages")
    search.add_argument("--architecture", metavar="sm_90", help="only pages that hold for it")
    search.add_argument("--operator", metavar="NAME", help="only pages about it: reduction, gemm, stencil, ...")
    search.add_argument("--limit", type=limit, default=8, metavar="N", help="at most N pages (8; 0: all)")
    show = actions.add_parser("show", help="one page")
    show.add_argument("page", metavar="ID", help="as the search prints it, or a code such as KF405")
    for parser in (search, show):
        parser.add_argument("--json", action="store_true", help="print JSON (schema 1)")


def _add_job_options(
    parser: argparse.ArgumentParser,
    device: str,
    setting: str = "value of a tunable",
    limited: str = "seconds for one kernel",
) -> None:
    """What every command that runs kernels takes; ``device`` is the default one."""
    parser.add_argument("targets", nargs="+", metavar="FILE[:KERNEL]", help="a .cu file, one kernel of it, or a folder")
    parser.add_argument("--device", default=device, help=f"where to run (default {device}; see `kernel-forge devices`)")
    parser.add_argument("--seed", type=seed, help="repeat the inputs and orders that this seed gave")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=setting)
    parser.add_argument("--time-limit", type=seconds, default=120.0, metavar="S", help=limited)
    parser.add_argument(
        "-I", dest="include", type=folder, action="append", default=[], metavar="DIR", help="folder for #include"
    )
    parser.add_argument("-D", dest="define", action="append", default=[], metavar="NAME[=VALUE]", help="macro")
    parser.add_argument(
        "--flag", action="append", default=[], metavar="FLAG", help="for the CUDA compiler, as in --flag=-use_fast_math"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON report (schema 1) instead of text")
