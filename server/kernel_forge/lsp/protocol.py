"""What happens to a message before a feature sees it: every request is answered, nothing bad goes further.

pygls drops a message that does not fit the protocol and shows a pop-up: the client then waits for ever. Here a
request is refused with an error of JSON-RPC, and a notification, which cannot be answered, is logged.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from lsprotocol import types as lsp
from pygls.protocol import JsonRPCNotification, JsonRPCRequestMessage, LanguageServerProtocol

from kernel_forge.lsp.structure import reason

log = logging.getLogger(__name__)
_OURS = (  # we keep the documents: pygls's copy splits lines elsewhere and raises for a URI it cannot read
    lsp.TEXT_DOCUMENT_DID_OPEN,
    lsp.TEXT_DOCUMENT_DID_CHANGE,
    lsp.TEXT_DOCUMENT_DID_CLOSE,
    lsp.NOTEBOOK_DOCUMENT_DID_OPEN,
    lsp.NOTEBOOK_DOCUMENT_DID_CHANGE,
    lsp.NOTEBOOK_DOCUMENT_DID_CLOSE,
)
_NOT_INITIALIZED = int(lsp.ErrorCodes.ServerNotInitialized)
_INVALID_REQUEST = int(lsp.ErrorCodes.InvalidRequest)
_INVALID_PARAMS = int(lsp.ErrorCodes.InvalidParams)
_METHOD_NOT_FOUND = int(lsp.ErrorCodes.MethodNotFound)
_INTERNAL_ERROR = int(lsp.ErrorCodes.InternalError)


class Protocol(LanguageServerProtocol):
    """pygls's protocol with its own reading of messages."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        for method in _OURS:
            self.fm.builtin_features.pop(method, None)

    def structure_message(self, data: Any) -> Any:
        """Nothing yet: this is called for every object inside a message too, see :meth:`handle_message`."""
        return data

    def handle_message(self, message: Any) -> None:
        """Take one message as parsed from JSON; whatever it is, no exception leaves."""
        if not isinstance(message, Mapping) or message.get("jsonrpc") != self.VERSION:
            self._refuse_malformed(message)
        elif "method" not in message:
            self._take_response(message)
        elif not isinstance(message["method"], str):
            self._refuse_malformed(message)
        elif "id" not in message:
            self._take_notification(message["method"], message)
        elif not _is_id(message["id"]):
            self._refuse_malformed(message)
        else:
            self._take_request(message["id"], message["method"], message)

    def refuse(self, msg_id: int | str | None, code: int, text: str) -> None:
        """Answer a request with an error; ``msg_id`` is None where the message has no readable one."""
        log.warning("refused: %s", text)
        # As JSON: lsprotocol's message would leave out an id of null, which JSON-RPC demands.
        self._send_data({"jsonrpc": self.VERSION, "id": msg_id, "error": {"code": code, "message": text}})

    def cancel_others(self) -> None:
        """Answer every request in progress but the present one with *cancelled*.

        pygls does it too when it shuts down, but walks through the dictionary that those answers change.
        """
        own: object = asyncio.current_task()
        for msg_id, future in tuple(self._request_futures.items()):
            if msg_id != self.msg_id and future is not own:
                future.cancel()

    def _execute_handler(
        self,
        msg_id: int | str,
        handler: Callable[..., Any],
        callback: Callable[[Any], None],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        def done(future: Any) -> None:
            self._request_futures.pop(msg_id, None)  # pygls would keep that of every notification
            callback(future)

        super()._execute_handler(msg_id, handler, done, args, kwargs)

    def _refuse_malformed(self, message: Any) -> None:
        found = message.get("id") if isinstance(message, Mapping) else None
        self.refuse(found if _is_id(found) else None, _INVALID_REQUEST, "not a JSON-RPC 2.0 message")

    def _take_request(self, msg_id: int | str, method: str, message: Mapping[str, Any]) -> None:
        if self._shutdown:
            self.refuse(msg_id, _INVALID_REQUEST, f"{method}: the server has been shut down")
        elif self._workspace is None and method != lsp.INITIALIZE:
            self.refuse(msg_id, _NOT_INITIALIZED, f"{method}: the server has not been initialized")
        elif self._workspace is not None and method == lsp.INITIALIZE:
            self.refuse(msg_id, _INVALID_REQUEST, f"{method}: the server has been initialized already")
        elif not self._knows(method):
            self.refuse(msg_id, _METHOD_NOT_FOUND, f"Method Not Found: {method[:200]}")
        else:
            try:
                request = self._structured(method, message, JsonRPCRequestMessage)
            except Exception as error:
                self.refuse(msg_id, _INVALID_PARAMS, f"Invalid Params of {method}: {reason(error)}")
                return
            if isinstance(request, lsp.InitializeRequest):  # pygls raises for some roots, and we need none
                request.params.root_uri = request.params.root_path = None
            if hasattr(request, "id"):
                super().handle_message(request)
            else:
                self.refuse(msg_id, _INVALID_REQUEST, f"{method} is a notification and must have no id")

    def _take_notification(self, method: str, message: Mapping[str, Any]) -> None:
        if method != lsp.EXIT and (self._shutdown or self._workspace is None):
            log.warning("ignored %s outside of the session", method)
        elif method != lsp.CANCEL_REQUEST and not self._knows(method):
            log.info("ignored %s, which this server does not know", method)
        else:
            try:
                notification = self._structured(method, message, JsonRPCNotification)
            except Exception as error:
                log.warning("ignored %s: %s", method, reason(error))
                return
            super().handle_message(notification)

    def _take_response(self, message: Mapping[str, Any]) -> None:
        msg_id = message.get("id")
        if not _is_id(msg_id) or msg_id not in self._result_types:
            log.warning("ignored a response to nothing that was asked")
            return
        kind = self._result_types.pop(msg_id)
        if self._request_futures[msg_id].done():  # nobody waits for it any more
            del self._request_futures[msg_id]
            return
        error = message.get("error")
        try:
            if error is not None:
                self._handle_response(msg_id, None, self._converter.structure(error, lsp.ResponseError))
            else:
                result = self._converter.structure(dict(message), kind).result if kind else message.get("result")
                self._handle_response(msg_id, result)
        except Exception as wrong:  # whoever asked must not wait for ever
            text = f"the client's answer cannot be read: {reason(wrong)}"
            self._handle_response(msg_id, None, lsp.ResponseError(code=_INTERNAL_ERROR, message=text))

    def _knows(self, method: str) -> bool:
        return method in self.fm.builtin_features or method in self.fm.features

    def _structured(self, method: str, message: Mapping[str, Any], other: type) -> Any:
        kind = self.get_message_type(method)
        if kind is None:  # a method of our own: its handler reads the JSON
            known = {key: message[key] for key in ("id", "method", "jsonrpc") if key in message}
            return other(**known, params=message.get("params"))
        return self._converter.structure(dict(message), kind)


def _is_id(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)
