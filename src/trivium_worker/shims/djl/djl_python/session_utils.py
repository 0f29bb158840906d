"""The answers to requests that begin or end a session, by the headers of SageMaker's clients."""

import json
import logging
from datetime import datetime, timezone
from typing import Any

from djl_python.inputs import Input
from djl_python.outputs import Output
from djl_python.session_manager import Session, SessionManager

HEADER_SAGEMAKER_SESSION_ID = "X-Amzn-SageMaker-Session-Id"
HEADER_SAGEMAKER_CLOSED_SESSION_ID = "X-Amzn-SageMaker-Closed-Session-Id"

_FAILED = 424


async def create_session(request: tuple[SessionManager, Input]) -> dict[str, Any]:
    """Begin a session; return what is answered: `data` and `properties`, or `error` and `code`."""
    manager, _ = request
    try:
        session = manager.create_session()
        expires = datetime.fromtimestamp(session.expiration_ts or 0, tz=timezone.utc)
        named = f"{session.session_id}; Expires={expires.strftime('%Y-%m-%dT%H:%M:%SZ')}"
        return _done(session.session_id, "created", {HEADER_SAGEMAKER_SESSION_ID: named})
    except Exception as error:
        return _refused("create", str(error))


async def close_session(request: tuple[SessionManager, Input]) -> dict[str, Any]:
    """End the session that a request names; return what is answered."""
    manager, inputs = request
    try:
        session_id = inputs.get_property(HEADER_SAGEMAKER_SESSION_ID)
        manager.close_session(session_id)
        return _done(session_id, "closed", {HEADER_SAGEMAKER_CLOSED_SESSION_ID: str(session_id)})
    except Exception as error:
        return _refused("close", str(error))


def get_session(session_manager: SessionManager | None, request: Input) -> Session | None:
    """Return the session that a request names; RuntimeError where it names one and sessions are off."""
    session_id = request.get_property(HEADER_SAGEMAKER_SESSION_ID)
    if session_manager is not None:
        return session_manager.get_session(session_id)
    if session_id is not None:
        raise RuntimeError(
            f"invalid payload. stateful sessions not enabled, {HEADER_SAGEMAKER_SESSION_ID} header not supported"
        )
    return None


def session_non_stream_output_formatter(response: dict[str, Any], **_: Any) -> Output:
    """Return what `create_session` or `close_session` gave, as the only item of an answer."""
    output = Output().add_property("Content-Type", "application/json")
    if "error" in response:
        return output.add(
            Output.binary_encode(
                {"data": "\n", "last": True, "error": response["error"], "code": response["code"]}
            )
        )
    data = response["data"]
    text = json.dumps(data, ensure_ascii=False) if isinstance(data, dict) else data
    for key, value in (response.get("properties") or {}).items():
        output.add_property(key, value)
    return output.add(Output.binary_encode({"data": text + "\n", "last": True}))


def _done(session_id: str | None, word: str, properties: dict[str, str]) -> dict[str, Any]:
    logging.getLogger(__name__).info("Session %s %s", session_id, word)
    return {"data": {"result": f"Session {session_id} {word}"}, "properties": properties}


def _refused(verb: str, why: str) -> dict[str, Any]:
    return {"error": f"Failed to {verb} session: {why}", "code": _FAILED}
