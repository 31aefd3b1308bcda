"""Which pages of ``kb/patterns`` answer a few words: BM25 (Robertson and Zaragoza, *The Probabilistic Relevance
Framework: BM25 and Beyond*, Foundations and Trends in Information Retrieval 3(4), 2009) over word stems.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from kernel_forge.domain.errors import UsageError
from kernel_forge.knowledge.patterns import OPERATORS, Capability, Pattern, patterns

_K1, _B = 1.2, 0.75
"""How soon repeated words count no more, and how far long pages are discounted: the usual values."""
_WEIGHTS = {"title": 4.0, "id": 3.0, "keywords": 3.0, "when": 2.0, "operators": 1.0, "text": 1.0}
"""What one word counts by where it stands."""
_SUFFIXES = ("ations", "ation", "tions", "tion", "ings", "ing", "ers", "ed", "es", "s", "e")
_STOP_WORDS = frozenset(
    "a after all an and any are as at be before but by can do does each every for from has have how i in into is it "
    "its kernel me more most much my no not of on one only or so some than that the their then there these they this "
    "to too use using very want was what when where which while why with within you".split()
)


@dataclass(frozen=True, slots=True)
class Match:
    """A page and how well it fits; scores compare only within one search."""

    pattern: Pattern
    score: float


def search_patterns(
    words: str, architecture: Capability | None = None, operator: str | None = None, limit: int | None = None
) -> tuple[Match, ...]:
    """The pages that have some of the words, the best first; equals by their id. Without words all pages, by id.

    Args:
        words: what to look for, in any form and order.
        architecture: only pages that hold for this compute capability.
        operator: only pages about this one of :data:`OPERATORS`, those of general use included.
        limit: at most so many.

    Raises:
        UsageError: there is no such operator.
    """
    if operator is not None and operator not in OPERATORS:
        raise UsageError(f"{operator} is no operator; operators are {', '.join(OPERATORS)}")
    scores = bm25(stems(words), _frequencies()) if words.strip() else dict.fromkeys(patterns(), 0.0)
    found = [
        Match(p, scores[p.id]) for p in patterns().values() if p.id in scores and p.holds_for(architecture, operator)
    ]
    return tuple(sorted(found, key=lambda match: (-match.score, match.pattern.id))[:limit])


def stems(text: str) -> list[str]:
    """The words of a text without case, endings and stop words, in their order; ``-ize`` counts as ``-ise``."""
    words = re.findall(r"[a-z0-9]+", text.lower().replace("_", " "))
    return [_stem(word) for word in words if word not in _STOP_WORDS]


def _stem(word: str) -> str:
    suffix = next((s for s in _SUFFIXES if word.endswith(s) and len(word) - len(s) >= 3), "")
    return re.sub(r"iz$", "is", word.removesuffix(suffix))


def bm25(query: list[str], pages: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Page -> score, for pages that have a word of the query; ``pages`` is page -> word -> how often it is there."""
    lengths = {name: sum(counts.values()) for name, counts in pages.items()}
    usual = sum(lengths.values()) / len(lengths)
    scores: dict[str, float] = {}
    for word in dict.fromkeys(query):
        having = [name for name, counts in pages.items() if word in counts]
        rarity = math.log(1 + (len(pages) - len(having) + 0.5) / (len(having) + 0.5))
        for name in having:
            count = pages[name][word]
            discount = _K1 * (1 - _B + _B * lengths[name] / usual)
            scores[name] = scores.get(name, 0.0) + rarity * count * (_K1 + 1) / (count + discount)
    return scores


@cache
def _frequencies() -> Mapping[str, Mapping[str, float]]:
    """Page -> word -> how often it is there, by where."""
    return {page.id: _counts(page) for page in patterns().values()}


def _counts(page: Pattern) -> Mapping[str, float]:
    operators = "" if page.is_general else " ".join(page.operators)
    parts = {
        "title": page.title,
        "id": page.id,
        "keywords": " ".join(page.keywords),
        "when": page.when,
        "operators": operators,
        "text": page.text,
    }
    weighted: dict[str, float] = {}
    for part, text in parts.items():
        for word, count in Counter(stems(text)).items():
            weighted[word] = weighted.get(word, 0.0) + _WEIGHTS[part] * count
    return weighted
