"""Reads from a prediction where its model is to be registered from, if the server registers models so.

Source: spec sheet `djl`, section 4.5. What of a URL is allowed is the pattern's to say, by whatever way it comes, and
then the server's bounds on where models are fetched from.
"""

from collections.abc import Mapping

from trivium.codecs.error_table import said
from trivium.servers.djl.wire.management import servable, source_of
from trivium.servers.djl.wire.options import LazyRule
from trivium.servers.djl.wire.request import named
from trivium.servers.djl.words.model_urls import read_devices, read_url
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, InferLazily
from trivium.types.payload import Raw
from trivium.types.sources import ModelSource

URL, ENGINE, DEVICE = "model_url", "engine_name", "device"
MOST_CHARACTERS = 2000


def lazily(infer: Infer, rule: LazyRule | None) -> tuple[Infer | InferLazily, ServeError | None]:
    """Return the operation of a prediction, and what is answered if its model is not known; None for the usual words.
    INVALID or UNSUPPORTED for a URL that can be none of a model.
    """
    raw = infer.payload
    assert isinstance(raw, Raw), "a prediction has a body"
    url = named(URL, raw.query, raw.properties, raw.parts)
    if rule is None:
        return infer, _not_here(infer) if url else None
    if not (infer.model and url):
        return infer, _no_url(infer)
    if len(url) > MOST_CHARACTERS or not rule.pattern.fullmatch(url):
        return infer, _denied(infer, url)
    return InferLazily(infer, _source(infer, url, raw.properties)), None


def _source(infer: Infer, url: str, properties: Mapping[str, str]) -> ModelSource:
    place = servable(read_url(url))
    lower = {name.lower(): value for name, value in properties.items()}
    wanted = (infer.model, infer.version, lower.get(ENGINE, ""))
    devices = read_devices(lower[DEVICE]) if lower.get(DEVICE) else None
    return source_of(place, "the URL of the prediction", wanted, {}, devices)


def _no_url(infer: Infer) -> ServeError:
    return said(
        Code.NOT_FOUND,
        f"There is no model {infer.model[:80]!r}, and the request says not by {URL} where it is registered from.",
        "Parameter model_url is required.",
    )


def _denied(infer: Infer, url: str) -> ServeError:
    return said(
        Code.NOT_FOUND,
        f"There is no model {infer.model[:80]!r}, and {url[:200]!r} does not match model_url_pattern, which says what "
        "predictions may register.",
        f"Permission denied: {url[:200]}",
    )


def _not_here(infer: Infer) -> ServeError:
    text = f"Model or workflow not found: {infer.model[:200]}"
    return said(
        Code.NOT_FOUND,
        f"There is no model {infer.model[:80]!r}, and this server registers none for a prediction with {URL}: trivium "
        "djl-serving does, with model_url_pattern. Register it by POST /models.",
        text,
    )
