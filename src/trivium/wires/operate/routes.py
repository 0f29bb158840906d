"""The routes of the console: its page at / and /console, /api/v1 with what it shows and changes, and the description
of all routes at /openapi.json and /docs.
"""

from collections.abc import Sequence
from enum import StrEnum

from trivium.codecs.path_segments import quoted
from trivium.codecs.routes import HttpRoute, RouteTree
from trivium.types.access import AccessScope
from trivium.types.wire import Head


class OperateVerb(StrEnum):
    """The request that a target stands for; the value is `Target.verb`."""

    PAGE = "page"
    FILE = "page file"
    DOCS = "docs"
    DOCS_FILE = "docs file"
    DESCRIPTION = "description"
    SIGN_IN = "sign in"
    SIGN_OUT = "sign out"
    OVERVIEW = "overview"
    SIGNED_IN_OVERVIEW = "overview for one who has signed in"
    MODEL = "model"
    INSTANCES = "instances"
    LOGS = "logs"
    REQUESTS = "requests"
    SETTINGS = "settings"
    EVENTS = "events"
    LOAD = "load"
    UNLOAD = "unload"
    SCALE = "scale"
    LOG_LEVEL = "log level"


_Verb = OperateVerb
CHANGES = frozenset({_Verb.LOAD, _Verb.UNLOAD, _Verb.SCALE, _Verb.LOG_LEVEL})
"""Verbs that change something."""

FILES = frozenset({_Verb.PAGE, _Verb.FILE, _Verb.DOCS, _Verb.DOCS_FILE})
"""Verbs that are answered by files, the same on every server."""

OPEN = frozenset({*FILES, _Verb.SIGN_IN, _Verb.SIGN_OUT})
"""Verbs that need no key: the pages tell nothing of the server."""

_OPEN = AccessScope.OPEN
_MODEL = "/api/v1/models/{model}"
ROWS: Sequence[HttpRoute] = (
    HttpRoute("GET", "/", _Verb.PAGE, _OPEN),
    HttpRoute("GET", "/console", _Verb.PAGE, _OPEN),
    HttpRoute("GET", "/console/", _Verb.PAGE, _OPEN),
    HttpRoute("GET", "/console/{file}", _Verb.FILE, _OPEN, subject="file", is_served=False),
    HttpRoute("GET", "/docs", _Verb.DOCS, _OPEN),
    HttpRoute("GET", "/docs/", _Verb.DOCS, _OPEN),
    HttpRoute("GET", "/docs/{file}", _Verb.DOCS_FILE, _OPEN, subject="file", is_served=False),
    HttpRoute("GET", "/openapi.json", _Verb.DESCRIPTION, AccessScope.INFER),
    HttpRoute("POST", "/api/v1/session", _Verb.SIGN_IN, _OPEN, takes_body=True),
    HttpRoute("DELETE", "/api/v1/session", _Verb.SIGN_OUT, _OPEN, is_served=False),
    HttpRoute("GET", "/api/v1/overview", _Verb.OVERVIEW),
    HttpRoute("GET", "/api/v1/requests", _Verb.REQUESTS),
    HttpRoute("GET", "/api/v1/settings", _Verb.SETTINGS),
    HttpRoute("GET", "/api/v1/events", _Verb.EVENTS),
    HttpRoute("POST", "/api/v1/settings/log-level", _Verb.LOG_LEVEL, takes_body=True),
    HttpRoute("GET", _MODEL, _Verb.MODEL, is_served=False),
    HttpRoute("GET", f"{_MODEL}/instances", _Verb.INSTANCES, is_served=False),
    HttpRoute("GET", f"{_MODEL}/logs", _Verb.LOGS, is_served=False),
    HttpRoute("POST", f"{_MODEL}/load", _Verb.LOAD, takes_body=True, is_served=False),
    HttpRoute("POST", f"{_MODEL}/unload", _Verb.UNLOAD, takes_body=True, is_served=False),
    HttpRoute("POST", f"{_MODEL}/scale", _Verb.SCALE, takes_body=True, is_served=False),
)
"""All that this protocol answers."""

_READ = "/api/v1/overview, /models/MODEL (/instances, /logs), /requests, /settings and /events"


def _advice(head: Head, allow: str) -> str:
    if allow:
        return f"{quoted(head.path)} is not served under the method {quoted(head.method)}; use {allow}."
    return (
        f"There is no route {quoted(head.path)}. All routes are at /docs. The console is at /console; what it shows is "
        f"at {_READ}, and what it changes at /models/MODEL/load, /unload and /scale and at /settings/log-level below "
        "/api/v1."
    )


TREE = RouteTree(ROWS, _advice)
