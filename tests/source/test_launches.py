"""Launch sites: what each argument means is from the CUDA programming guide and the runtime API."""

import pytest

from kernel_forge.source import LaunchSite, parse


def launch(statement: str) -> LaunchSite:
    file = parse(f"void f(int n) {{\n  int a = 1;\n  {statement}\n  g(a);\n}}\n", "a.cu")
    (site,) = file.launches
    assert site.in_function == "f"
    text = file.text[file.offset(site.range.start) : file.offset(site.range.end)]
    assert text in statement
    return site


@pytest.mark.parametrize(
    ("statement", "kernel", "template_args", "configuration", "args"),
    [
        ("k<<<1, 2>>>(x, n);", "k", (), ("1", "2", None, None), ("x", "n")),
        ("k<<<grid, dim3(16, 16), 0, s>>>();", "k", (), ("grid", "dim3(16, 16)", "0", "s"), ()),
        (
            "k<<<(n + 255) / 256, 256, n * sizeof(float)>>>(x);",
            "k",
            (),
            ("(n + 255) / 256", "256", "n * sizeof(float)", None),
            ("x",),
        ),
        ("k<float, 4><<<1, 2>>>(x);", "k", ("float", "4"), ("1", "2", None, None), ("x",)),
        (
            "k<T, (N > 3), g<int>><<<1, 2>>>(x);",
            "k",
            ("T", "(N > 3)", "g<int>"),
            ("1", "2", None, None),
            ("x",),
        ),
        ("a::b::k<<<1, 2>>>(x);", "k", (), ("1", "2", None, None), ("x",)),
        ("::k<1><<<1, 2>>>(x);", "k", ("1",), ("1", "2", None, None), ("x",)),
        ("o.k<<<1, 2>>>(x);", "k", (), ("1", "2", None, None), ("x",)),
        ("p->k<int><<<1, 2>>>(x);", "k", ("int",), ("1", "2", None, None), ("x",)),
        ("(k)<<<1, 2>>>(x);", "k", (), ("1", "2", None, None), ("x",)),
        ("(k<4>)<<<1, 2>>>(x);", "k", ("4",), ("1", "2", None, None), ("x",)),
        (
            "k<<<1, 2>>>((float4 *)x, f(a, b), {1, 2}, [&] { return 1; }());",
            "k",
            (),
            ("1", "2", None, None),
            ("(float4 *)x", "f(a, b)", "{1, 2}", "[&] { return 1; }()"),
        ),
        ("k<<<dim3{1, 2}, 2>>>(x);", "k", (), ("dim3{1, 2}", "2", None, None), ("x",)),
        ("k<<<cdiv<int>(n, 2), 2>>>(x);", "k", (), ("cdiv<int>(n, 2)", "2", None, None), ("x",)),
        ("if (n) k <<< 1, 2 >>> (x);", "k", (), ("1", "2", None, None), ("x",)),
        ("CHECK((k<<<1, 2>>>(x)));", "k", (), ("1", "2", None, None), ("x",)),
        ("k\n    <<<1,\n       2>>>(x, // first; then\n  n);", "k", (), ("1", "2", None, None), ("x", "n")),
        ("/* it's; */ k<<<1, 2>>>(x);", "k", (), ("1", "2", None, None), ("x",)),
        ("k<<<n >> 2, 2>>>(x);", "k", (), ("n >> 2", "2", None, None), ("x",)),
    ],
)
def test_chevrons(
    statement: str,
    kernel: str,
    template_args: tuple[str, ...],
    configuration: tuple[str | None, ...],
    args: tuple[str, ...],
) -> None:
    site = launch(statement)
    assert (site.kernel, site.template_args) == (kernel, template_args)
    assert (site.grid, site.block, site.shared, site.stream) == configuration
    assert site.args == args
    assert not site.cooperative


@pytest.mark.parametrize(
    ("statement", "kernel", "template_args", "configuration", "args", "cooperative"),
    [
        ("cudaLaunchKernel((void *)k, g, b, p, 8, s);", "k", (), ("g", "b", "8", "s"), (), False),
        (
            "cudaLaunchKernel(k<int>, g, dim3(1, 2), p);",
            "k",
            ("int",),
            ("g", "dim3(1, 2)", None, None),
            (),
            False,
        ),
        (
            "cudaLaunchCooperativeKernel((const void *)ns::k<1>, g, b, p);",
            "k",
            ("1",),
            ("g", "b", None, None),
            (),
            True,
        ),
        ("cudaLaunchCooperativeKernel(&k, g, b, p, 0);", "k", (), ("g", "b", "0", None), (), True),
        (
            "cudaLaunchCooperativeKernel(reinterpret_cast<void *>(k), g, b, p);",
            "k",
            (),
            ("g", "b", None, None),
            (),
            True,
        ),
        ("cudaLaunchKernelEx(&c, k<2>, x, n);", "k", ("2",), ("", "", None, None), ("x", "n"), False),
        ("cudaLaunchKernelExC(&c, (void *)k, p);", "k", (), ("", "", None, None), (), False),
    ],
)
def test_runtime_calls(
    statement: str,
    kernel: str,
    template_args: tuple[str, ...],
    configuration: tuple[str | None, ...],
    args: tuple[str, ...],
    cooperative: bool,
) -> None:
    site = launch(statement)
    assert (site.kernel, site.template_args) == (kernel, template_args)
    assert (site.grid, site.block, site.shared, site.stream) == configuration
    assert (site.args, site.cooperative) == (args, cooperative)


def test_what_is_no_launch() -> None:
    text = (
        'void f() { puts("k<<<1, 2>>>(x)"); /* k<<<1, 2>>>(x); */ a <<<b; }\n'
        "// k<<<1, 2>>>(x)\n#define RUN k<<<1, 2>>>(x)\n"
    )
    assert parse(text, "a.cu").launches == ()


def test_in_function_names_methods_kernels_and_main() -> None:
    text = (
        "struct S { void m() { k<<<1, 2>>>(); } };\nvoid S::n() { k<<<1, 2>>>(); }\n"
        "__global__ void parent() { k<<<1, 2>>>(); }\nint *main() { auto l = [] { k<<<1, 2>>>(); }; }\n"
        "int k0 = (k<<<1, 2>>>(), 0);\n"
    )
    assert [s.in_function for s in parse(text, "a.cu").launches] == ["m", "n", "parent", "main", None]
