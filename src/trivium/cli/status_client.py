"""Asks a server how it does: by the console's overview, or, where it has no console, by the v2 protocol."""

import http.client
from contextlib import closing
from typing import NamedTuple

import msgspec

from trivium.chat.server_client import ChatFailure, ServerClient
from trivium.wires.operate.schema import InstanceTally, ModelRow, Overview, ServerRow, Totals

MOST = 64 * 2**20
"""Bytes of an overview: some 1,000 of each model."""

_READY, _FAILED = "READY", "FAILED"
_NO_CONSOLE = (
    "This server has no console, so only states are known. Start it with --console to see requests, latencies and "
    "workers."
)
_NOT_READY = "The server is not ready."
_SEE = "See the models' states; a model that failed says why in the server's log, too."


class Reading(NamedTuple):
    """Holds what a server has said, and a word on how it was asked."""

    overview: Overview
    note: str = ""


class _IndexRow(msgspec.Struct):
    """A version in the index of the v2 protocol."""

    name: str
    version: str = ""
    state: str = ""
    reason: str = ""


class _Described(msgspec.Struct):
    """Name and version of a server, as the v2 protocol has them."""

    name: str = ""
    version: str = ""


class StatusClient(ServerClient):
    """Reads the state of one server."""

    def read(self) -> Reading:
        """Return how it does now. Raises ChatFailure, with what to do, where that cannot be had."""
        status, body = self._asked("GET", "/api/v1/overview")
        if status == 200:
            try:
                return Reading(msgspec.json.decode(body, type=Overview))
            except msgspec.MsgspecError as error:
                raise ChatFailure(
                    f"{self.place} answers, but not as a Trivium server does. Give the address of one."
                ) from error
        if status in (401, 403):
            raise ChatFailure(
                f"{self.place} does not show its state: {_refusal(body) or f'status {status}'} Give --key, with a key "
                "of the scope manage, or set TRIVIUM_CHAT_KEY."
            )
        return Reading(self._by_index(), _NO_CONSOLE)

    def _by_index(self) -> Overview:
        """Return what the v2 protocol knows: states, and no more."""
        ready, _ = self._asked("GET", "/v2/health/ready")
        found, body = self._asked("POST", "/v2/repository/index", b"{}")
        try:
            rows = msgspec.json.decode(body, type=list[_IndexRow]) if found == 200 else []
            described = msgspec.json.decode(self._asked("GET", "/v2")[1], type=_Described)
        except msgspec.MsgspecError:
            found = 404
        if found != 200 or ready not in (200, 400, 503):
            raise ChatFailure(
                f"{self.place} answers neither for the console nor for the v2 protocol's index: it is "
                "no Trivium server, or it shows another server's routes alone. Start it with --console."
            )
        is_ready = ready == 200
        return overview_of(described.name, described.version, is_ready, [tuple_of(row) for row in rows])

    def _asked(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        with closing(self.connected()) as connection:
            try:
                answer = self.answer(connection, method, path, body)
                return answer.status, answer.read(MOST)
            except (OSError, http.client.HTTPException) as error:
                raise self.silence(error) from error


def tuple_of(row: _IndexRow) -> tuple[str, str, str, str]:
    """Return a version of the index: name, version, state, reason."""
    return row.name, row.version, row.state, row.reason


def overview_of(
    name: str, version: str, is_ready: bool, versions: list[tuple[str, str, str, str]]
) -> Overview:
    """Return what an index tells, as an overview: of each model the version that serves, else the last one."""
    models: dict[str, ModelRow] = {}
    for model, number, state, reason in versions:
        known = models.get(model)
        if known is None or known.state != _READY.lower():
            models[model] = ModelRow(
                model,
                number,
                _word(state, reason),
                reason or None,
                None,
                0,
                0,
                0.0,
                None,
                None,
                0,
                0,
                InstanceTally(0, 0, 0),
                (),
            )
    server = ServerRow(
        name, version, "", 0.0, is_ready, None if is_ready else _NOT_READY, None if is_ready else _SEE
    )
    return Overview(server, Totals(0, 0, 0, 0), tuple(models[each] for each in sorted(models)))


def _word(state: str, reason: str) -> str:
    """Return our word for a state of the index, which calls one that failed unavailable, for a reason."""
    if state == "UNAVAILABLE" and reason and reason != "unloaded":
        return _FAILED.lower()
    return state.lower() or "not loaded"


def _refusal(body: bytes) -> str:
    try:
        said = msgspec.json.decode(body)["error"]
    except (msgspec.MsgspecError, KeyError, TypeError):
        return ""
    return said if isinstance(said, str) else ""
