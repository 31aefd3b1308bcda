"""Changes of a text that is kept as a string: a sidecar, or a file that cannot be read as CUDA."""

import re

from lsprotocol import types as lsp

from kernel_forge.lsp.encoding import Encoding, from_units

_LINE_END = re.compile(r"\r\n|\r|\n")


def change(text: str, event: lsp.TextDocumentContentChangeEvent, encoding: Encoding) -> str:
    """``text`` after one change of a ``didChange``; positions are clipped into the text."""
    if not isinstance(event, lsp.TextDocumentContentChangePartial):
        return event.text
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]

    def offset(at: lsp.Position) -> int:
        if at.line >= len(starts):
            return len(text)
        end = starts[at.line + 1] if at.line + 1 < len(starts) else len(text)
        return starts[at.line] + from_units(text[starts[at.line] : end].rstrip("\r\n"), at.character, encoding)

    start, end = sorted((offset(event.range.start), offset(event.range.end)))
    return text[:start] + event.text + text[end:]
