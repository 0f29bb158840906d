"""A path belongs to the protocol of its end, of its first segment, or of an end that any first segment may have."""

import pytest
from tests.harness.fake_core import EchoProtocol
from tests.harness.http_connection import HttpHarness

from trivium.frontends.http.state import HttpState
from trivium.types.errors import ServeError
from trivium.types.listeners import split_prefix

V1, PREDICTS, ANYWHERE, ROOT = EchoProtocol(), EchoProtocol(), EchoProtocol(), EchoProtocol()
OWNERS = {"v1": V1, "v1/...:predict": PREDICTS, ".../predict": ANYWHERE, "": ROOT}


@pytest.fixture
def site() -> HttpState:
    harness = HttpHarness().site
    return HttpState(harness.core, OWNERS, ROOT, harness.limits, harness.offload)


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("/v1/models", V1),
        ("/v1/models/m:predict", PREDICTS),
        ("/v1/models/m:predict/", PREDICTS),
        ("/v1/models/m:predicts", V1),
        ("/v1/predict", V1),
        ("/m/predict", ANYWHERE),
        ("/m/2/predict/", ANYWHERE),
        ("/", ROOT),
        ("/m/predict/x", None),
        ("/predict", ANYWHERE),
        ("/.../predict", ANYWHERE),
        ("/m", None),
    ],
)
def test_who_owns_a_path(site: HttpState, path: str, owner: EchoProtocol | None) -> None:
    if owner is not None:
        assert site.protocol_of(path) is owner
        return
    with pytest.raises(ServeError, match=r"paths begin with /, /\.\.\./predict, /v1, /v1/\.\.\.:predict\."):
        site.protocol_of(path)


@pytest.mark.parametrize(
    ("prefix", "parts"),
    [
        ("v1", ("v1", "")),
        ("v1/...:predict", ("v1", ":predict")),
        (".../predict", ("", "/predict")),
        ("", ("", "")),
    ],
)
def test_the_parts_of_a_prefix(prefix: str, parts: tuple[str, str]) -> None:
    assert split_prefix(prefix) == parts
