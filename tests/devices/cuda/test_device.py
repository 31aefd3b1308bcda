"""The GPU as a device, as far as it needs no GPU: what is compiled is cached, and the cache is not believed blindly."""

from pathlib import Path

import pytest

from kernel_forge.devices.artifact_cache import ENTRY_FILE, META_FILE
from kernel_forge.devices.compilers.gpu.code import GpuCode
from kernel_forge.devices.compilers.gpu.compiler import GpuCompiler
from kernel_forge.devices.compilers.opinion import DeviceCode
from kernel_forge.devices.cuda import CudaDevice
from kernel_forge.devices.cuda.artifacts import load_code
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompileFailed, CompilerMessage, Unavailable
from kernel_forge.domain.text import Location, Range
from kernel_forge.ports import Artifact

REQUEST = CompileRequest("/tests/k.cu", "__global__ void k() {}", ("k",))

WARNING = CompilerMessage("warning", "unused", Location("/tests/k.cu", Range.of_line(0, 5, 9)), "a script")


class Scripted(GpuCompiler):
    """Compiles anything at once."""

    description = "a script"

    def __init__(self) -> None:
        self.asked = 0

    def compile(self, request: CompileRequest, code: DeviceCode, architecture: str) -> GpuCode:
        self.asked += 1
        return GpuCode(b"image", {"k": "_Z1kv"}, {}, (WARNING,), self.description)


def compiled(cache: Path, compiler: Scripted) -> Artifact | CompileFailed | Unavailable:
    return CudaDevice("cuda", cache, ("false",), compiler=compiler).compile_for(REQUEST, "sm_90a")


def test_a_damaged_entry_is_compiled_anew(tmp_path: Path) -> None:
    compiler = Scripted()
    first = compiled(tmp_path, compiler)
    assert isinstance(first, Artifact) and not first.from_cache
    for damage in ("[", "{}", "[]", '{"resources": {"k": {"speed": 1}}, "compiler": "x"}'):
        (Path(first.handle) / META_FILE).write_text(damage)
        again = compiled(tmp_path, compiler)
        assert isinstance(again, Artifact) and not again.from_cache
        cached = compiled(tmp_path, compiler)
        assert isinstance(cached, Artifact) and cached.from_cache
        assert WARNING in cached.messages
    assert compiler.asked == 5


def test_a_cache_that_cannot_be_written_is_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = compiled(tmp_path / "file", Scripted())
    assert isinstance(answer, Unavailable) and str(tmp_path / "file") in answer.reason


@pytest.mark.parametrize("damage", ["image", "entries"])
def test_damaged_code_is_not_sent_to_a_gpu(tmp_path: Path, damage: str) -> None:
    made = compiled(tmp_path, Scripted())
    assert isinstance(made, Artifact)
    folder = Path(made.handle)
    if damage == "image":
        (folder / ENTRY_FILE).write_bytes(b"imagf")
    else:
        (folder / META_FILE).write_text((folder / META_FILE).read_text().replace('"entries"', '"entrees"'))
    found = load_code(made)
    assert isinstance(found, Unavailable) and "damaged" in found.reason
    assert not folder.exists()
