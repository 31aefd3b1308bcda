"""The files that the compilers see, and what they are called."""

from pathlib import Path

import pytest

from kernel_forge.devices import shadow
from kernel_forge.devices.compilers.messages import UserFile
from kernel_forge.devices.shadow import ShadowTree, TooManyHeaders, shadow_sources


def tree(path: Path | str, text: str, *include_dirs: Path, host: tuple[str, ...] = ()) -> ShadowTree:
    def host_code(content: str) -> tuple[tuple[int, int], ...]:
        return tuple((content.index(h), content.index(h) + len(h)) for h in host if h in content)

    return shadow_sources(str(path), text, tuple(str(d) for d in include_dirs), host_code)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_headers_of_one_name_in_two_folders(tmp_path: Path) -> None:
    """Each means the one beside the file that includes it, for the host compiler and for NVIDIA's."""
    for folder in ("a", "b"):
        write(tmp_path / folder / "part.h", '#include "common.h"\n')
        write(tmp_path / folder / "common.h", f"// of {folder}\n")
    made = tree(tmp_path / "m.cu", '#include "a/part.h"\n#include "b/part.h"\n')
    for files in (made.files, made.device_files):
        main, part_a, common_a, part_b, common_b = files
        assert files[main].split("\n")[1:3] == [f'#include "{part_a}"', f'#include "{part_b}"']
        assert files[part_a].split("\n")[1] == f'#include "{common_a}"'
        assert files[part_b].split("\n")[1] == f'#include "{common_b}"'
        assert files[common_b] == f'#line 1 "{tmp_path}/b/common.h"\n// of b\n'


@pytest.mark.parametrize("given", ["m.cu", "./m.cu", "sub/../m.cu"])
def test_a_relative_path_is_shown_as_given_and_compiled_as_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "h.h", "")
    made = tree(given, '#include "h.h"\n')
    assert made.files["0_m.cu"].startswith(f'#line 1 "{tmp_path}/m.cu"\n')
    assert made.sources == {
        f"{tmp_path}/m.cu": UserFile(given, '#include "h.h"\n'),
        f"{tmp_path}/h.h": UserFile(f"{tmp_path}/h.h", ""),
    }


def test_a_symbolic_link_is_not_followed_in_names_but_known_as_the_same_file(tmp_path: Path) -> None:
    real = write(tmp_path / "real" / "h.h", '#include "../real/h.h"\n')
    (tmp_path / "link").symlink_to(tmp_path / "real")
    made = tree(tmp_path / "link" / "m.cu", '#include "h.h"\n#include "../real/h.h"\n')
    assert real.exists() and list(made.files) == ["0_m.cu", "1_h.h"]
    assert f"{tmp_path}/link/h.h" in made.sources


def test_names_of_files_are_safe_in_an_include(tmp_path: Path) -> None:
    write(tmp_path / 'we"ird ü.h', "")
    made = tree(tmp_path / "m.cu", '#include <we"ird ü.h>\n', tmp_path)
    assert list(made.files)[1] == "1_we_ird__.h"
    assert made.files["1_we_ird__.h"] == f'#line 1 "{tmp_path}/we\\"ird ü.h"\n'


def test_host_code_is_blanked_in_every_file(tmp_path: Path) -> None:
    write(tmp_path / "h.h", "int a; HOST\n; int b;\n")
    made = tree(tmp_path / "m.cu", 'HOST\n#include "h.h"\n', host=("HOST",))
    assert made.device_files["1_h.h"].endswith("int a;     \n; int b;\n")
    assert made.sources[f"{tmp_path}/m.cu"].text == '    \n#include "h.h"\n'
    assert "HOST" not in "".join(made.files.values())


def test_left_out_headers_are_told_with_their_line(tmp_path: Path) -> None:
    text = "// <mpi.h> is not needed\n#include <mpi.h>\n#include <cassert>\n#include <vector>\n"
    made = tree(tmp_path / "m.cu", text)
    assert made.dropped == [(f"{tmp_path}/m.cu", 1, "mpi.h")]
    assert made.files["0_m.cu"].split("\n")[2:5] == ["", "", "#include <vector>"]
    assert made.device_files["0_m.cu"].split("\n", 1)[1] == text


def test_a_byte_order_mark_is_not_compiled(tmp_path: Path) -> None:
    made = tree(tmp_path / "m.cu", "\ufeff#include <mpi.h>\n")
    assert made.dropped and "\ufeff" not in made.device_files["0_m.cu"]


def test_too_many_headers_are_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow, "MAX_HEADERS", 2)
    for name in "abc":
        write(tmp_path / f"{name}.h", "")
    assert len(tree(tmp_path / "m.cu", '#include "a.h"\n#include "b.h"\n').files) == 3
    with pytest.raises(TooManyHeaders) as error:
        tree(tmp_path / "m.cu", '#include "a.h"\n#include "b.h"\n#include "c.h"\n')
    assert error.value.location.range.start.line == 2


def test_names_as_long_as_a_file_system_allows_are_shortened(tmp_path: Path) -> None:
    """255 bytes, to which the number of the copy would be added; an include that is longer names no file."""
    name = "h" * 253 + ".h"
    write(tmp_path / name, "// it\n")
    made = tree(tmp_path / ("m" * 252 + ".cu"), f'#include "{name}"\n#include "{"x" * 5000}"\n')
    assert [len(copy) for copy in made.files] == [102, 102]
    assert "// it" in list(made.files.values())[1]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ('#include "gone.h"\n#include <vector>\n', True),
        ('#define H "h.h"\n#include H\n', False),
        ("int a;\n  # /* c */ include MAKE(h)\n", False),
        ('#include_next "h.h"\n', False),
        ("#include/**/<vector>\n", True),
        ("#define includes 1\n", True),
    ],
)
def test_a_copy_is_whole_only_where_every_include_names_its_file(tmp_path: Path, text: str, whole: bool) -> None:
    write(tmp_path / "outer.h", text)
    assert tree(tmp_path / "m.cu", text).is_whole is whole
    assert tree(tmp_path / "m.cu", '#include "outer.h"\n').is_whole is whole


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ('#if __has_include("opt.h")', "#if 1                     "),
        ('#  elif defined(X) && __has_include( "opt.h" )', "#  elif defined(X) && 1                       "),
        ("#define HAS __has_include(<opt.h>)", "#define HAS 1                     "),
    ],
)
def test_whether_a_header_of_the_project_exists_is_part_of_the_text(tmp_path: Path, question: str, answer: str) -> None:
    """So a header that appears or goes makes another artifact. The compilers look beside the copies."""
    absent = tree(tmp_path / "m.cu", f"{question}\n", tmp_path / "include")
    write(tmp_path / "include" / "opt.h", "")
    present = tree(tmp_path / "m.cu", f"{question}\n", tmp_path / "include")
    assert absent.is_whole and present.is_whole
    for before, after in ((absent.files, present.files), (absent.device_files, present.device_files)):
        assert before["0_m.cu"].split("\n")[1] == question
        assert after["0_m.cu"].split("\n")[1] == answer
    assert present.sources[f"{tmp_path}/m.cu"].text == f"{question}\n"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("#ifdef __has_include\n#endif\n", True),
        ('#if defined(__has_include) && __has_include("a.h")\n#endif\n', True),
        ("#define HAS(x) __has_include(x)\n", False),
        ("#if __has_include_next(<a.h>)\n#endif\n", False),
        ("#if __has_include \\\n (NAME)\n#endif\n", False),
    ],
)
def test_a_copy_is_whole_only_where_every_question_names_its_file(tmp_path: Path, text: str, whole: bool) -> None:
    assert tree(tmp_path / "m.cu", text).is_whole is whole
