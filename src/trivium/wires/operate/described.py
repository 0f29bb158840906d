"""Describes the console's routes to programs: the page, what it shows, and what it changes. Pure."""

from collections.abc import Mapping

from trivium.codecs.routes import described
from trivium.types.described import (
    ANY_KIND,
    ANYTHING,
    EVENTS_KIND,
    JSON_KIND,
    TEXT,
    WHOLE,
    Answers,
    DescribedArgument,
    DescribedBody,
    DescribedVerb,
    WireDescription,
    json_body,
    object_of,
)
from trivium.types.protocol_context import ProtocolContext
from trivium.wires.operate import schema
from trivium.wires.operate.routes import ROWS, OperateVerb

_Verb = OperateVerb
_ERROR = json_body(object_of({"error": TEXT}))
_FILE: Answers = {"200": DescribedBody({ANY_KIND: ANYTHING}), "304": None}
_MARK = DescribedArgument(
    "Trivium-Console", {"const": "1"}, "What changes something needs it, unless keys are asked for.", "header"
)
_OF_VERSION = DescribedArgument("version", TEXT, "The version that is shown; else all that serve.")
_STATE = object_of({"state": {"type": ["string", "null"]}, "reason": {"type": ["string", "null"]}})


def _shown(summary: str, document: type, *arguments: DescribedArgument) -> DescribedVerb:
    return DescribedVerb(summary=summary, answers={"200": json_body(document)}, arguments=arguments)


_CHANGED: Answers = {"200": json_body(_STATE)}
_VERBS: Mapping[str, DescribedVerb] = {
    _Verb.PAGE: DescribedVerb(summary="The console's page", answers=_FILE),
    _Verb.FILE: DescribedVerb(summary="A file of the page", answers=_FILE),
    _Verb.DOCS: DescribedVerb(summary="This description, to read and try", answers=_FILE),
    _Verb.DOCS_FILE: DescribedVerb(summary="A file of that page", answers=_FILE),
    _Verb.DESCRIPTION: DescribedVerb(
        summary="This description, as OpenAPI 3.1",
        answers={"200": json_body({"type": "object"}), "304": None},
    ),
    _Verb.SIGN_IN: DescribedVerb(
        summary="Show a key, for a cookie",
        body=DescribedBody(
            {
                JSON_KIND: object_of({"key": TEXT}),
                "application/x-www-form-urlencoded": object_of({"key": TEXT}),
            }
        ),
        answers={"204": None, "303": None},
    ),
    _Verb.SIGN_OUT: DescribedVerb(summary="Give the cookie back", answers={"204": None}),
    _Verb.OVERVIEW: _shown("The server and all its models", schema.Overview),
    _Verb.REQUESTS: _shown("Requests that ended while somebody listened to the events", schema.Requests),
    _Verb.SETTINGS: _shown("What the server was started with", schema.SettingsPage),
    _Verb.EVENTS: DescribedVerb(
        summary="What happens, as it happens",
        answers={
            "200": DescribedBody({EVENTS_KIND: ANYTHING}, "A snapshot a second, and every change between.")
        },
    ),
    _Verb.MODEL: _shown("All that is known of one model", schema.ModelPage, _OF_VERSION),
    _Verb.INSTANCES: _shown("The instances of a model, and how they died", schema.Instances, _OF_VERSION),
    _Verb.LOGS: _shown("The last lines of a model's instances", schema.Logs),
    _Verb.LOAD: DescribedVerb(summary="Load a model", answers=_CHANGED, arguments=(_MARK,)),
    _Verb.UNLOAD: DescribedVerb(summary="Unload a model", answers=_CHANGED, arguments=(_MARK,)),
    _Verb.SCALE: DescribedVerb(
        summary="Say how many instances a model has",
        body=json_body(object_of({"instances": WHOLE})),
        answers=_CHANGED,
        arguments=(_MARK,),
    ),
    _Verb.LOG_LEVEL: DescribedVerb(
        summary="Say what is written to the log",
        body=json_body(object_of({"level": {"enum": ["DEBUG", "INFO", "WARNING", "ERROR"]}})),
        answers={"200": json_body(object_of({"log_level": TEXT}))},
        arguments=(_MARK,),
    ),
}


def describe(context: ProtocolContext) -> WireDescription:
    """See `types.described.SupportsDescription`."""
    return WireDescription(
        "Console",
        described(ROWS, _VERBS),
        {"4XX": _ERROR, "5XX": _ERROR},
        "What the page shows, and changes.",
    )
