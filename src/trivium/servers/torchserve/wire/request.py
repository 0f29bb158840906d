"""A request's body as an operation: parts as they came, headers as properties, what TorchServe itself adds to them.

Source: spec sheet `torchserve`, sections 4.1 and 4.2. How a part reaches a handler (parsed, as text, as bytes) is the
handler dialect's business, not the wire's.
"""

from collections.abc import Callable, Mapping

from trivium.codecs import forms
from trivium.servers.torchserve.wire.routes import TorchServeVerb, arguments, url_path
from trivium.types.generation import Generate
from trivium.types.operations import EXPLAIN, PREDICT, Infer
from trivium.types.payload import Raw, RawPart
from trivium.types.wire import Body, Head, Target

_LONGEST_NAME = 4096
_EXPLAINING = (TorchServeVerb.EXPLAIN, TorchServeVerb.KSERVE_EXPLAIN)
_KSERVE = (TorchServeVerb.KSERVE_PREDICT, TorchServeVerb.KSERVE_EXPLAIN)
_ABOUT_TRANSFER = (b"transfer-encoding", b"expect")


def decode_infer(
    head: Head,
    target: Target,
    body: Body,
    request_id: str,
    as_generate: Callable[[Raw, Mapping[str, str]], Generate] | None = None,
    keeps_forms: bool = False,
) -> Infer:
    """The operation of a target that takes a body, which `as_generate` reads for a model that generates. A handler gets
    JSON that is called a form as JSON, unless the wire `keeps_forms`. INVALID or TOO_LARGE for a form that cannot be
    read.
    """
    properties = properties_of(head, len(body.data))
    if target.verb in _KSERVE:
        properties["explain"] = "False"
    kind = head.headers.get(b"content-type", b"").decode("latin-1")
    whole = forms.called_form(kind, body.data)
    fields = forms.parts(kind, body.data) if whole is None or keeps_forms else (whole,)
    query: tuple[tuple[str, str], ...] = ()
    model = target.model
    if target.verb == TorchServeVerb.INVOKE:
        query = arguments(head)
        model = model or _model_named(fields)
    payload = Raw(fields, properties, query, lease=body.lease, path=_path(head, target), whole=whole)
    method = EXPLAIN if target.verb in _EXPLAINING else PREDICT
    return Infer(model, payload, target.version, request_id, method=method, as_generate=as_generate)


def properties_of(head: Head, size: int) -> dict[str, str]:
    """Return the header fields as a handler sees them: under the client's own names, without those that are about how
    the body came, and with the length of one that came without.
    """
    properties, headers = head.spelt(), head.headers
    if b"transfer-encoding" in headers or b"expect" in headers:
        properties = {
            name: value
            for name, value in properties.items()
            if name.lower().encode("latin-1") not in _ABOUT_TRANSFER
        }
    if b"content-length" not in headers:
        properties["content-length"] = str(size)
    return properties


def _path(head: Head, target: Target) -> str | None:
    has_path = target.verb in (TorchServeVerb.PREDICT, TorchServeVerb.EXPLAIN)
    return url_path(head) if has_path else None


def _model_named(fields: tuple[RawPart, ...]) -> str:
    """The model that a form's field names; without one the core takes the only model that there is."""
    for field in fields:
        if field.name == "model_name":
            return bytes(field.data[:_LONGEST_NAME]).decode("utf-8", "replace")
    return ""
