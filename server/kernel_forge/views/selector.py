"""C++ that chooses a configuration by the sizes, from the best of each tuned case."""

import math
import re
from collections.abc import Sequence

from kernel_forge.domain.expression import Number
from kernel_forge.domain.spec import KernelSpec
from kernel_forge.domain.tuning import CaseChoice, KernelTuning
from kernel_forge.views.words import caveat, pairs

_WIDE = 2**31
_FIRST = "// Configurations of the kernel "
_MADE = " by size, made by kernel-forge tune; "


def is_selector(text: str) -> bool:
    """Whether ``text`` begins as what :func:`selector_text` makes."""
    return text.startswith(_FIRST) and _MADE in text.partition("\n")[0]


def selector_text(tuning: KernelTuning, spec: KernelSpec) -> str:
    """A header of C++14 with one namespace, ``NAME_tuning``: a table of the cases, and functions of the sizes.

    ``tuned_for(sizes...)`` gives the configuration of the nearest case, by the Euclidean distance between the
    logarithms of the sizes; of cases equally near the earlier. Where every tunable is a template argument,
    ``dispatch(sizes..., launch)`` calls ``launch`` with the values as compile-time constants.

    Raises:
        ValueError: there is no choice to make (no cases, or none with sizes).
    """
    choices, sizes = tuning.choices, tuple(tuning.cases[0]) if tuning.cases else ()
    if not choices or not sizes:
        raise ValueError(f"{tuning.kernel}: no choices by size")
    names = [t.name for t in spec.tunables]
    fields = _fields(names)
    types = [_type([choice.configuration[name] for choice in choices]) for name in names]
    parts = [
        _head(tuning),
        "#pragma once\n\n#include <cmath>\n#include <type_traits>\n",
        f"namespace {_identifier(tuning.kernel)}_tuning {{\n",
        "struct Configuration {\n"
        + "".join(f"  {kind} {field};\n" for kind, field in zip(types, fields, strict=True))
        + "};\n",
        _table(choices, sizes, names, types),
        _nearest(sizes),
        _dispatch(choices, spec, sizes, types),
        "}  // namespace\n",
    ]
    return "\n".join(parts)


def _head(tuning: KernelTuning) -> str:
    warning = caveat(tuning.basis)
    lines = [
        f"{_FIRST.removeprefix('// ')}{tuning.kernel}{_MADE}times: {tuning.basis}.",
        *([f"{warning}."] if warning is not None else []),
        *(f"{pairs(c.sizes)}: {pairs(c.configuration)}" for c in tuning.choices),
    ]
    return "".join(f"// {' '.join(line.split())}\n" for line in lines)


def _fields(names: Sequence[str]) -> list[str]:
    """Names like ``names`` that are none of them: a tunable may be a macro where this is included."""
    found = []
    for name in names:
        field = f"{name}_"
        while field in names or field in found:
            field += "_"
        found.append(field)
    return found


def _type(values: Sequence[Number]) -> str:
    if all(isinstance(v, bool) for v in values):
        return "bool"
    if any(isinstance(v, float) for v in values):
        return "double"
    return "int" if all(-_WIDE <= v < _WIDE for v in values) else "long long"


def _literal(value: Number, kind: str) -> str:
    if kind == "bool":
        return "true" if value else "false"
    if kind == "double":
        if not math.isfinite(value):
            raise ValueError(f"{value} is no number of C++")
        return repr(float(value))
    return f"{int(value)}LL" if kind == "long long" else str(int(value))


def _table(choices: Sequence[CaseChoice], sizes: Sequence[str], names: Sequence[str], types: Sequence[str]) -> str:
    def values(choice: CaseChoice) -> str:
        return ", ".join(_literal(choice.configuration[n], t) for n, t in zip(names, types, strict=True))

    rows = "".join(f"    {{{values(c)}}},\n" for c in choices)
    cases = "".join(f"    {{{', '.join(f'{c.sizes[s]}LL' for s in sizes)}}},\n" for c in choices)
    count = len(choices)
    return (
        f"inline const Configuration& configuration(int choice) {{\n"
        f"  static constexpr Configuration table[{count}] = {{\n{rows}  }};\n"
        "  return table[choice];\n}\n\n"
        f"inline const long long* tuned_case(int choice) {{  // {', '.join(sizes)}\n"
        f"  static constexpr long long table[{count}][{len(sizes)}] = {{\n{cases}  }};\n"
        "  return table[choice];\n}\n\n"
        f"constexpr int choices = {count};\n"
    )


def _parameters(sizes: Sequence[str]) -> tuple[str, str]:
    """How functions of the sizes declare these, and how they pass them on."""
    names = _fields(sizes)
    return ", ".join(f"long long {name}" for name in names), ", ".join(names)


def _nearest(sizes: Sequence[str]) -> str:
    params, args = _parameters(sizes)
    return f"""\
// Number of the nearest tuned case; sizes below 1 count as 1.
inline int choice_for({params}) {{
  const long long sizes[] = {{{args}}};
  int best = 0;
  double least = -1.0;
  for (int choice = 0; choice < choices; ++choice) {{
    double distance = 0.0;
    for (int i = 0; i < {len(sizes)}; ++i) {{
      const double a = sizes[i] < 1 ? 1.0 : static_cast<double>(sizes[i]);
      const double b = tuned_case(choice)[i] < 1 ? 1.0 : static_cast<double>(tuned_case(choice)[i]);
      const double ratio = std::log(a < b ? b / a : a / b);
      distance += ratio * ratio;
    }}
    if (least < 0.0 || distance < least) {{
      least = distance;
      best = choice;
    }}
  }}
  return best;
}}

inline const Configuration& tuned_for({params}) {{
  return configuration(choice_for({args}));
}}
"""


def _dispatch(choices: Sequence[CaseChoice], spec: KernelSpec, sizes: Sequence[str], types: Sequence[str]) -> str:
    names = [t.name for t in spec.tunables]
    macros = [name for name in names if name in spec.macro_tunables]
    if macros:
        which = f"{', '.join(macros)} {'is' if len(macros) == 1 else 'are'}"
        return (
            f"// No dispatch: {which} not among the template arguments of the kernel. A macro has one value in\n"
            "// each compilation: compile the kernel once per configuration, under a name of its own, and choose by\n"
            "// choice_for; a value of the launch alone can be taken from tuned_for.\n"
        )
    if "double" in types:
        return "// No dispatch: a template argument that is no integer cannot be passed as a constant in C++14.\n"
    params, args = _parameters(sizes)
    cases = []
    for number, choice in enumerate(choices):
        constants = ", ".join(
            f"std::integral_constant<{t}, {_literal(choice.configuration[n], t)}>{{}}"
            for n, t in zip(names, types, strict=True)
        )
        label = "default" if number == len(choices) - 1 else f"case {number}"
        cases.append(f"    {label}:\n      launch({constants});\n      break;\n")
    lambda_params = ", ".join(f"auto {field}" for field in _fields(names))
    shown = ", ".join(f"decltype({field})::value" for field in _fields(names))
    return f"""\
// Calls launch({", ".join(names)}) with the values as types std::integral_constant (C++14), for example
//   dispatch({", ".join(sizes)}, [&]({lambda_params}) {{ {spec.kernel}<{shown}><<<grid, block>>>(...); }});
template <typename Launch>
inline void dispatch({params}, Launch&& launch) {{
  switch (choice_for({args})) {{
{"".join(cases)}  }}
}}
"""


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)
