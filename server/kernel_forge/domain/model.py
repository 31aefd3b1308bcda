"""What a language model is asked, and what it answers: a reply, or one of a closed set of failures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum


class PartKind(Enum):
    """What a part of a request is. Nothing else of the user's is ever sent."""

    PROMPT = "prompt"
    BRIEF = "brief"
    SPEC = "spec"
    KERNEL = "kernel"
    KNOWLEDGE = "knowledge"
    FINDINGS = "findings"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the user's turn: ours (a rendered prompt, pages of ``kb/``, findings) or the user's."""

    kind: PartKind
    text: str


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """The shape of a structured answer, which the model gives by calling a tool of this name.

    Attributes:
        name: letters, digits, ``_`` and ``-``; at most 64.
        description: what belongs into it.
        schema: JSON schema of an object.
    """

    name: str
    description: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call.

    ``answer``, ``system`` and ``stable`` are the prefix that a provider can cache: two calls that share them to the
    character pay little for them the second time.

    Attributes:
        system: what the model is and may do.
        parts: what changes from call to call; at least one.
        stable: the beginning of the user's turn that stays the same from call to call.
        answer: None where the answer is text.
        max_tokens: most tokens of the answer, thinking included.
        temperature: None for the provider's own; a provider that takes none refuses any other value.
    """

    system: str
    parts: tuple[Part, ...]
    stable: tuple[Part, ...] = ()
    answer: AnswerSchema | None = None
    max_tokens: int = 16_000
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens as the provider counts them; the four are disjoint, ``output`` includes thinking."""

    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_read: int = 0

    @property
    def prompt(self) -> int:
        """All tokens of the prompt, cached or not."""
        return self.input + self.cache_write + self.cache_read

    @property
    def total(self) -> int:
        """All of them."""
        return self.prompt + self.output


class FailureKind(Enum):
    """Why there is no usable reply.

    ``UNREACHABLE`` is also a server that fails (HTTP 500 to 504); ``REJECTED`` a request that it does not accept (a
    wrong key, an unknown model); ``NO_PRICE`` a limit in money for a model of unknown price; ``SECRET`` a likely
    secret in the request, which was not sent.
    """

    REFUSED = "refused"
    TRUNCATED = "truncated"
    MALFORMED = "malformed"
    RATE_LIMITED = "rate limited"
    OVERLOADED = "overloaded"
    STREAM_DROPPED = "stream dropped"
    NO_KEY = "no key"
    BUDGET = "budget used up"
    CANCELLED = "cancelled"
    UNREACHABLE = "unreachable"
    REJECTED = "rejected"
    NO_PRICE = "no price"
    SECRET = "secret found"


@dataclass(frozen=True, slots=True)
class ModelFailure:
    """A call that gave nothing to use.

    Attributes:
        reason: one line for a person; never holds a key or a secret.
        usage: what the provider said was used; None where it said nothing, or not to the end.
        cost: US dollars: exact where ``usage`` is known, else the most it can have been; None where the price is
            unknown.
        text: what had arrived of the answer.
        retry_after: seconds after which the server wants to be asked again, where it said so.
        retries: the failed attempts before this one, the oldest first.
    """

    kind: FailureKind
    reason: str
    model: str = ""
    request_id: str | None = None
    usage: TokenUsage | None = None
    cost: Decimal | None = Decimal(0)
    text: str = ""
    retry_after: float | None = None
    retries: tuple["ModelFailure", ...] = ()


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A complete answer.

    Attributes:
        text: all text of it, without thinking.
        structured: the JSON object of :class:`AnswerSchema`, its required keys present; not validated further.
        stop_reason: in the provider's word.
        cost: US dollars, exact; None where the model's price is unknown.
        model: as the provider names the one that answered.
        request_id: the provider's, for a question to its support.
        retries: the failed attempts before this one, the oldest first.
    """

    text: str
    structured: Mapping[str, object] | None
    stop_reason: str
    usage: TokenUsage
    cost: Decimal | None
    model: str
    request_id: str | None
    seconds: float = 0.0
    retries: tuple[ModelFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """How far a call is.

    Attributes:
        attempt: 1 for the first.
        characters: of the answer so far, in this attempt.
        text: what is new of the answer (of its JSON where it is structured).
        waiting: why and how long the next attempt waits; None while one runs.
    """

    attempt: int
    characters: int
    text: str = ""
    waiting: str | None = None


@dataclass(frozen=True, slots=True)
class ModelBudget:
    """What may be spent on a model; None for no limit.

    Attributes:
        dollars: US dollars.
        tokens: of prompts and answers, cached ones too.
        calls: attempts that were sent.
        seconds: from the start of the job.
    """

    dollars: Decimal | None = None
    tokens: int | None = None
    calls: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ModelSpending:
    """What was spent, or can have been at most: US dollars, tokens, attempts."""

    dollars: Decimal = field(default_factory=Decimal)
    tokens: int = 0
    calls: int = 0
