"""Renews keys over HTTP: `/token?type=inference` on the port of management, where requests need keys.

Source: spec sheet `torchserve`, section 2: 200 with a bare line end, the old key worthless at once. Who may ask is for
the listener's authorizer. Without keys there is no such path.
"""

import logging
from collections.abc import Sequence
from urllib.parse import parse_qsl

from trivium.codecs.header_text import JSON, uncached_lines
from trivium.codecs.routes import ANY, HttpRoute, with_slash
from trivium.servers.torchserve.words.tokens import AUTHENTICATION, TokenPurpose, Tokens
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ServeError
from trivium.types.operations import ResponsePart
from trivium.types.wire import Head, HttpAnswer

log = logging.getLogger(__name__)

RENEWED = "renew a token"
_RENEWABLE = {each.value: each for each in (TokenPurpose.INFERENCE, TokenPurpose.MANAGEMENT)}
_INVALID_KEY = 400


ROWS: Sequence[HttpRoute] = tuple(
    with_slash([HttpRoute(f"{ANY} OPTIONS", "/token", RENEWED, AccessScope.ANY)])
)
_PATHS = frozenset(row.path for row in ROWS)


def is_renewal(head: Head) -> bool:
    """Tell whether a head asks for a renewal."""
    return head.path in _PATHS


def renew(head: Head, tokens: Tokens) -> None:
    """Renew the key that the query names. UNAUTHENTICATED, in the original's words, for one that there is not. What
    keeps it from being written is in the log, too: an operator's matter.
    """
    try:
        kind = dict(parse_qsl(head.query, max_num_fields=16)).get("type", "")
    except ValueError:
        kind = ""
    if kind not in _RENEWABLE:
        raise ServeError(Code.UNAUTHENTICATED, AUTHENTICATION, status=_INVALID_KEY)
    try:
        tokens.renew(_RENEWABLE[kind])
    except ServeError as error:
        log.error("The key of %s stays as it was: %s", kind, error.message)
        raise


class RenewalEncoder:
    """Writes the answer to a renewal: nothing but a line end."""

    __slots__ = ("_request_id",)

    def __init__(self, request_id: str) -> None:
        self._request_id = request_id

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer."""
        return HttpAnswer(200, uncached_lines(self._request_id) + JSON, (b"\n",), 1)
