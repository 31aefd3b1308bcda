"""C++ text and its brackets, without a parse: where one closes, and the parts between separators outside them."""


def split_arguments(text: str) -> list[str]:
    """``text`` at its commas outside brackets, angle brackets included; nothing for an empty text."""
    return split_outside(text, ",", "()[]{}<>") if text.strip() else []


def factors(text: str) -> list[str]:
    """``text`` at its ``*`` outside brackets."""
    return split_outside(text, "*", "()[]")


def split_outside(text: str, separator: str, pairs: str) -> list[str]:
    """``text`` at each ``separator`` outside the brackets ``pairs``, white space around the parts taken off."""
    parts, depth, begin = [], 0, 0
    for i, character in enumerate(text):
        depth += (character in pairs[::2]) - (character in pairs[1::2])
        if character == separator and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    return [*parts, text[begin:].strip()]


def closing(text: str, at: int) -> int | None:
    """Where the bracket that opens at ``at`` closes."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "[(") - (text[i] in "])")
        if depth == 0:
            return i
    return None
