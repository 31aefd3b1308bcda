"""From an address back to the user's line, in executables of the host's compiler."""

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from kernel_forge.devices.emulator import symbols
from kernel_forge.devices.emulator.symbols import source_line
from kernel_forge.devices.emulator.toolchain import find_compiler

COMPILER = find_compiler()
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler is installed")
# `LABEL` gives the instruction at its place a name, so that its address can be looked up.
OURS = """#define LABEL(name) __asm__ volatile(".globl " #name "\\n" #name ":" ::: "memory")
static inline __attribute__((always_inline)) void inner(volatile int* p) { LABEL(in_ours); *p = 1; }
static inline __attribute__((always_inline)) void outer(volatile int* p) {
  inner(p);
}
"""
USER = """#line 10 "/u/my file.cu"
volatile int x;
static inline __attribute__((always_inline)) void device_function() {
  outer(&x);
}
__attribute__((noinline)) void kernel() {
  LABEL(in_user); x = 2;
#line 3 "/u/header.h"
  LABEL(in_header); x = 3;
#line 17 "/u/my file.cu"
  device_function();
}
int main() { kernel(); }
"""


@pytest.fixture(scope="module", params=["-gdwarf-4", "-gdwarf-5"])
def executable(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert COMPILER is not None
    folder = tmp_path_factory.mktemp("symbols")
    (folder / "native").mkdir()
    (folder / "native" / "ours.h").write_text(OURS)
    (folder / "main.cpp").write_text(f'#include "{folder}/native/ours.h"\n{USER}')
    (folder / "second.cpp").write_text("int unrelated;\n")  # a unit that does not have the address
    fixed = () if COMPILER.kind == "zig" else ("-fno-pie", "-no-pie")
    subprocess.run(
        [*COMPILER.command, *fixed, "-O1", "-g1", request.param, "second.cpp", "main.cpp", "-o", "program"],
        cwd=folder,
        check=True,
        timeout=120,
    )
    return folder / "program"


def address(executable: Path, label: str) -> int:
    with executable.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        (symbol,) = table.get_symbol_by_name(label)
        return int(symbol["st_value"])


def test_a_line_of_the_user(executable: Path) -> None:
    assert source_line(executable, address(executable, "in_user")) == ("/u/my file.cu", 15)
    assert source_line(executable, address(executable, "in_header")) == ("/u/header.h", 3)


def test_code_inlined_out_of_our_headers_is_where_the_user_called_it(
    executable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    symbols.source_line.cache_clear()
    monkeypatch.setattr(symbols, "NATIVE", executable.parent / "native")
    # The innermost frame that is not ours: line 12 of the function, not line 17 of its caller.
    assert source_line(executable, address(executable, "in_ours")) == ("/u/my file.cu", 12)


def test_code_inlined_out_of_another_header_is_where_it_is(executable: Path) -> None:
    symbols.source_line.cache_clear()
    assert source_line(executable, address(executable, "in_ours")) == (f"{executable.parent}/native/ours.h", 2)


@pytest.mark.parametrize("where", [0, 1, 2**63])
def test_an_address_of_nothing(executable: Path, where: int) -> None:
    assert source_line(executable, where) is None


def test_an_executable_without_line_table(executable: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", str(stripped), str(executable)], check=True)
    assert source_line(stripped, address(executable, "in_user")) is None
