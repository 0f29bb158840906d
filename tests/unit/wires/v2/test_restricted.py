import pytest

from trivium.types.errors import Code, ServeError
from trivium.types.operations import Unload
from trivium.types.wire import Body, Head
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.http import KServeHttp
from trivium.wires.v2.restricted import GROUPS, Key, parse_restrictions
from trivium.wires.v2.routes import Verb

KEY = Key("admin-key", "a=b:c")


def test_rules():
    assert parse_restrictions("") == {}
    found = parse_restrictions(" model-repository , logging:Admin-Key=a=b:c ; trace:other=x;")
    assert found == {
        Verb.INDEX: KEY,
        Verb.LOAD: KEY,
        Verb.UNLOAD: KEY,
        Verb.LOG_SETTINGS: KEY,
        Verb.TRACE_SETTINGS: Key("other", "x"),
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("health", "no header and value"),
        ("health:key", "no header and value"),
        ("health:=v", "no header and value"),
        ("health:k=", "no header and value"),
        ("helth:k=v", "no group 'helth'"),
        (":k=v", "no group ''"),
        ("trace:k=v;trace:k=w", "'trace' is restricted twice"),
    ],
)
def test_wrong_rules(text, words):
    with pytest.raises(ServeError, match=words):
        parse_restrictions(text)


def test_every_route_is_in_one_group():
    assert sorted(verb for verbs in GROUPS.values() for verb in verbs) == sorted(Verb)


@pytest.mark.parametrize(
    ("sent", "is_open"), [({}, False), ({b"admin-key": b"a"}, False), ({b"admin-key": b"a=b:c"}, True)]
)
def test_a_restricted_route_takes_its_key(sent, is_open):
    protocol = KServeHttp(
        "trivium", "1", KServeOptions(restricted=parse_restrictions("model-repository:admin-key=a=b:c"))
    )
    assert protocol.head(Head("GET", "/v2", "", {})).verb == Verb.METADATA
    head = Head("POST", "/v2/repository/models/m/unload", "", sent)
    if is_open:  # and so for who is not on this machine, too
        assert protocol.decode(head, protocol.head(head), Body(b""))[0] == Unload("m")
        return
    with pytest.raises(ServeError, match="'admin-key'") as caught:
        protocol.head(head)
    assert caught.value.code is Code.FORBIDDEN
