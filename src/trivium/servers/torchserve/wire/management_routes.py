"""The routes that manage TorchServe's models.

Source: spec sheet `torchserve`, section 5, and what 0.12.0 answers: a slash at the end is no segment. Whether there is
such a model the core knows.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from trivium.codecs.routes import HttpRoute, endpoints, with_slash
from trivium.servers.torchserve.wire.routes import descriptions
from trivium.types.access import AccessScope, Endpoint


class ManagementVerb(StrEnum):
    """The request that a target stands for; the value is `Target.verb`."""

    REGISTER = "register"
    LIST = "list"
    DESCRIBE = "describe"
    SCALE = "scale"
    SET_DEFAULT = "set default"
    UNREGISTER = "unregister"
    READY = "ready"


_SET_DEFAULT = "set-default"
_OBSERVE, _MANAGE = AccessScope.OBSERVE, AccessScope.MANAGE
_ASKING = (ManagementVerb.LIST, ManagementVerb.DESCRIBE, ManagementVerb.READY)
_COLLECTION: Mapping[str, ManagementVerb] = {
    "GET": ManagementVerb.LIST,
    "POST": ManagementVerb.REGISTER,
}
_MEMBER: Mapping[str, ManagementVerb] = {
    "GET": ManagementVerb.DESCRIBE,
    "PUT": ManagementVerb.SCALE,
    "DELETE": ManagementVerb.UNREGISTER,
}
_DEFAULT: Mapping[str, ManagementVerb] = {**_MEMBER, "PUT": ManagementVerb.SET_DEFAULT}
_READY: Mapping[str, ManagementVerb] = {"GET": ManagementVerb.READY}
"""Method -> what it does: to all models, to one, to the version that is to be the default one, to KServe's v1 model."""


def scope_of(verb: ManagementVerb) -> AccessScope:
    """Return the right that a request needs, over HTTP and gRPC alike."""
    return _OBSERVE if verb in _ASKING else _MANAGE


def _route(path: str, verbs: Mapping[str, ManagementVerb]) -> Iterator[HttpRoute]:
    """Yield what is answered at a path, also with a slash behind it."""
    return with_slash(
        HttpRoute(
            method,
            path,
            verb,
            scope_of(verb),
            takes_body=verb is ManagementVerb.REGISTER,
            is_served=False,
        )
        for method, verb in verbs.items()
    )


_MEMBERS = ("/models/{model}", "/models/{model}/{version}")
_AT_DEFAULT = f"{_MEMBERS[1]}/{_SET_DEFAULT}"
_MANAGING = (*(row for path in _MEMBERS for row in _route(path, _MEMBER)), *_route(_AT_DEFAULT, _DEFAULT))
MANAGEMENT: Sequence[HttpRoute] = (
    *_route("/models", _COLLECTION),
    *_MANAGING,
    *_route("/v1/models/{model}", _READY),
    *descriptions(dict.fromkeys(row.path for row in _MANAGING), _OBSERVE),
)
"""The routes by which models are managed."""

ENDPOINTS: Sequence[Endpoint] = endpoints(MANAGEMENT)
"""All that is answered."""

TOLD = "/models, /models/MODEL[/VERSION[/set-default]], /v1/models/MODEL"
