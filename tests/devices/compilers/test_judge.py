"""Who decides, and what the verdict says of it."""

from dataclasses import dataclass, field

import pytest

from kernel_forge.devices.compilers.judge import Judge
from kernel_forge.devices.compilers.messages import UserFile
from kernel_forge.devices.compilers.opinion import DeviceCode, Opinion, opinion_of
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompileFailed, CompilerMessage, Unavailable
from kernel_forge.domain.text import Location, Range

HERE = Location("a.cu", Range.of_line(0))
ERROR = CompilerMessage("error", "no", HERE, "one")
WARNING = CompilerMessage("warning", "hm", HERE, "one")
YES, NO = Opinion(True, (WARNING,)), Opinion(False, (ERROR,))
UNSURE = Opinion(False, (), "no <bit>")
LATE = Opinion(False, (), "too slow", repeatable=False)
REQUEST = CompileRequest("a.cu", "", ("k",))


@dataclass
class FakeFrontEnd:
    """Has one opinion; counts what it is asked."""

    name: str
    opinion: Opinion
    started: int = 0
    closed: int = 0
    identity: str = field(init=False)

    def __post_init__(self) -> None:
        self.identity = self.name

    def start(self, request: CompileRequest, code: DeviceCode) -> "FakeFrontEnd":
        self.started += 1
        return self

    def result(self) -> Opinion:
        return self.opinion

    def close(self) -> None:
        self.closed += 1


def code(text: str = "") -> DeviceCode:
    return DeviceCode({"0_a.cu": text}, {"/w/a.cu": UserFile("a.cu", text)}, ())


def accepted(*front_ends: FakeFrontEnd, text: str = "") -> tuple[tuple[CompilerMessage, ...] | CompileFailed, bool]:
    with Judge("g++", front_ends).consider(REQUEST, code(text)) as consideration:
        verdict = consideration.on_success()
    assert all(f.closed == f.started for f in front_ends)
    return verdict, consideration.repeatable


def test_the_first_that_can_judge_decides() -> None:
    second = FakeFrontEnd("two", NO)
    assert accepted(FakeFrontEnd("one", YES), second) == ((WARNING,), True)
    assert second.started == 0
    assert accepted(FakeFrontEnd("one", NO)) == (CompileFailed((ERROR,)), True)


def test_the_verdict_says_who_could_not_judge_and_who_did() -> None:
    verdict, repeatable = accepted(FakeFrontEnd("one", UNSURE), FakeFrontEnd("two", YES))
    note = CompilerMessage("note", "one could not judge this code, so two did: no <bit>", None, "one")
    assert verdict == (WARNING, note) and repeatable
    verdict, repeatable = accepted(FakeFrontEnd("one", UNSURE), FakeFrontEnd("two", LATE))
    assert isinstance(verdict, tuple)
    assert [m.message for m in verdict] == [note.message, "two could not judge this code, so g++ did: too slow"]
    assert not repeatable


def test_without_a_judge_host_functions_are_refused() -> None:
    verdict, _ = accepted(FakeFrontEnd("one", UNSURE), text="int i;\n  fopen(a, b);")
    assert isinstance(verdict, CompileFailed)
    at = verdict.messages[0].location
    assert at is not None and at.path == "a.cu"
    assert (at.range.start.line, at.range.start.column, at.range.end.column) == (1, 2, 7)
    assert accepted(FakeFrontEnd("one", YES), text="fopen(a, b);") == ((WARNING,), True)


@pytest.mark.parametrize(
    "text",
    ["__device__ void signal(int* flag) {}\nsignal(p);", "Node* open(int) { }\nopen(1);", "#define kill(x) x\nkill(1)",
     "queue.remove(1); stack->open(); my_exit(1); // fopen(x)\n", 'printf("fopen(x)"); /* exit(1) */'],
)  # fmt: skip
def test_what_is_not_a_host_function(text: str) -> None:
    assert accepted(text=text) == ((), True)


def refused(message: CompilerMessage, *front_ends: FakeFrontEnd, **more: object) -> CompileFailed | Unavailable:
    dropped = [("a.cu", 3, "cub/cub.cuh")] if more.pop("dropped", False) else []
    with Judge("g++", front_ends).consider(REQUEST, code()) as consideration:
        return consideration.on_refusal((message,), dropped, **more)  # type: ignore[arg-type]


def test_what_the_host_compiler_refuses_is_not_yet_wrong() -> None:
    host = CompilerMessage("error", "unknown type", HERE, "g++")
    assert refused(host, FakeFrontEnd("one", NO)) == CompileFailed((ERROR,))
    assert refused(host, FakeFrontEnd("one", YES)) == Unavailable("valid CUDA, but not emulated: unknown type", HERE)
    assert refused(host) == CompileFailed((host,))
    assert refused(host, FakeFrontEnd("one", UNSURE), FakeFrontEnd("two", NO)) != CompileFailed((host,))


def test_what_the_emulator_lacks_is_unavailable_unless_the_code_is_wrong() -> None:
    host = CompilerMessage("error", "kf_not_emulated_x", HERE, "g++")
    lacking = Unavailable("not emulated: x", HERE)
    assert refused(host, lacking=lacking) == lacking
    assert refused(host, FakeFrontEnd("one", YES), lacking=lacking) == lacking
    assert refused(host, FakeFrontEnd("one", NO), lacking=lacking) == CompileFailed((ERROR,))


@pytest.mark.parametrize("message", ["'wmma' has not been declared", "'__nanosleep' was not declared"])
def test_a_feature_of_cuda_is_not_an_error_of_the_user(message: str) -> None:
    outcome = refused(CompilerMessage("error", message, HERE, "g++"))
    assert outcome == Unavailable(f"not emulated: {message}", HERE)


def test_a_message_outside_the_users_files_is_about_the_emulator() -> None:
    outcome = refused(CompilerMessage("error", "static assertion failed", None, "g++"))
    assert outcome == Unavailable("not emulated: static assertion failed", None)


def test_a_library_that_is_left_out_is_named_and_nvcc_not_kept_waiting() -> None:
    second = FakeFrontEnd("two", YES)
    host = CompilerMessage("error", "'cub' has not been declared", HERE, "g++")
    outcome = refused(host, FakeFrontEnd("one", UNSURE), second, dropped=True)
    assert outcome == Unavailable("<cub/cub.cuh> is not emulated: 'cub' has not been declared", HERE)
    assert second.started == 0


def test_the_identity_names_every_judge() -> None:
    one, two = FakeFrontEnd("one", YES), FakeFrontEnd("two", YES)
    judges = [Judge("g++", f) for f in ((), (one,), (two,), (one, two))]
    judges.append(Judge("clang++", ()))
    assert len({j.identity for j in judges}) == len(judges)
    assert Judge("g++", (one,)).identity == judges[1].identity


@pytest.mark.parametrize(
    ("log", "inconclusive"),
    [
        ("/w/a.cu(1): error: identifier is undefined\n", None),
        ('/w/a.cu(1): catastrophic error: cannot open source file "bit"\n', 'cannot open source file "bit"'),
        ("/w/a.cu:1:10: fatal error: x.h: No such file or directory\n", "x.h: No such file or directory"),
        ("/usr/include/x.h(3): error: bad\n", "/usr/include/x.h(3): error: bad"),
        ("", "it failed without a message"),
    ],
)
def test_a_failure_that_says_nothing_about_the_kernel(log: str, inconclusive: str | None) -> None:
    opinion = opinion_of(log, False, code("int x;").sources, "one")
    assert not opinion.accepted and opinion.inconclusive == inconclusive
