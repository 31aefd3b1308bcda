"""The SDK's exceptions as values."""

import json

import anthropic
import httpx2

from kernel_forge.domain.model import FailureKind, ModelFailure
from kernel_forge.llm.retry import seconds_of

EXPECTED = (anthropic.APIError, httpx2.HTTPError, httpx2.StreamError, json.JSONDecodeError, UnicodeDecodeError)
"""What a server and a network can cause."""

_BY_TYPE = {
    "rate_limit_error": FailureKind.RATE_LIMITED,
    "overloaded_error": FailureKind.OVERLOADED,
    "api_error": FailureKind.UNREACHABLE,
    "timeout_error": FailureKind.UNREACHABLE,
}
_BY_STATUS = {408: FailureKind.UNREACHABLE, 429: FailureKind.RATE_LIMITED, 529: FailureKind.OVERLOADED}


def failure_of(error: Exception, answering: bool) -> ModelFailure:
    """What an exception of :data:`EXPECTED` means; ``answering`` says that the answer had begun to arrive."""
    if isinstance(error, anthropic.APIStatusError):
        return _of_status(error)
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return ModelFailure(FailureKind.MALFORMED, "the server's answer is not JSON")
    if answering:
        return ModelFailure(FailureKind.STREAM_DROPPED, f"the answer broke off ({_words(error)})")
    if isinstance(error, anthropic.APITimeoutError):
        return ModelFailure(FailureKind.UNREACHABLE, "the server did not answer in time")
    return ModelFailure(FailureKind.UNREACHABLE, f"the server cannot be reached ({_words(error)})")


def can_have_cost(error: Exception) -> bool:
    """Whether the request may have reached a model: not where there was no connection, or an error for an answer."""
    if isinstance(error, anthropic.APIStatusError):
        return error.status_code < 300
    return not isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)


def _of_status(error: anthropic.APIStatusError) -> ModelFailure:
    # In a stream that had begun, the status is 200 and only the type says what is wrong.
    kind = _BY_TYPE.get(error.type or "") or _BY_STATUS.get(error.status_code)
    if kind is None:
        kind = FailureKind.UNREACHABLE if error.status_code >= 500 else FailureKind.REJECTED
    said = error.api_message if isinstance(error.api_message, str) else "no reason given"
    return ModelFailure(
        kind,
        f"the server says {error.type or error.status_code}: {said[:300]}",
        request_id=error.request_id,
        retry_after=seconds_of(error.response.headers.get("retry-after")),
    )


def _words(error: Exception) -> str:
    cause = error.__cause__ or error
    return str(cause).strip()[:200] or type(cause).__name__
