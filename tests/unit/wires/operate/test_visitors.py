"""Who may look at the console and change something: by tables of what browsers and programs send."""

import itertools

import pytest

from trivium.codecs.page_rule import rule_of
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Head
from trivium.wires.operate.routes import CHANGES, FILES, OPEN, OperateVerb
from trivium.wires.operate.visitors import VisitorRule

HERE = VisitorRule(rule_of("models.example.org"), may_come=True, has_keys=False)
KEYED = VisitorRule(rule_of(""), may_come=True, has_keys=True)
OPEN_TO_ALL = VisitorRule(rule_of(""), may_come=False, has_keys=False)
MARK = {b"trivium-console": b"1"}
OWN_PAGE = {b"origin": b"http://localhost:8080", b"sec-fetch-site": b"same-origin"}
READS = sorted(set(OperateVerb) - CHANGES - OPEN - {OperateVerb.DESCRIPTION})


def refused(rule: VisitorRule, verb: OperateVerb, fields: dict[bytes, bytes]) -> str:
    """Why a request is refused; empty where it is not."""
    try:
        rule.check(Head("GET", "/", "", {b"host": b"localhost:8080", **fields}), verb)
    except ServeError as error:
        return error.message if error.code is Code.FORBIDDEN else f"by {error.code}"
    return ""


def test_verbs_are_looked_at_changed_or_open() -> None:
    assert not CHANGES & OPEN
    assert {OperateVerb.LOAD, OperateVerb.UNLOAD, OperateVerb.SCALE, OperateVerb.LOG_LEVEL} == CHANGES


@pytest.mark.parametrize("verb", OperateVerb)
@pytest.mark.parametrize(
    "fields",
    [
        {b"host": b"evil.example"},  # DNS rebinding: a name of somebody else's that leads here
        {b"host": b"localhost.evil.example:8080"},
        {b"host": b"127.0.0.1.nip.io"},
        {b"host": b""},
        {b"origin": b"http://evil.example"},
        {b"origin": b"null"},
        {b"origin": b"http://localhost:3000"},  # another server of this machine
        {b"origin": b"https://localhost.evil.example:8080"},
        {b"origin": b"file://"},
    ],
)
def test_strangers_are_refused_whatever_they_ask(verb: OperateVerb, fields: dict[bytes, bytes]) -> None:
    for rule in (HERE, KEYED, OPEN_TO_ALL):
        assert refused(rule, verb, {**MARK, **fields})


@pytest.mark.parametrize(
    "host",
    [
        b"localhost",
        b"LOCALHOST:8080",
        b"127.0.0.1:8080",
        b"[::1]:8080",
        b"192.0.2.7",
        b"models.example.org:443",
    ],
)
def test_our_own_names_and_addresses_are_let_in(host: bytes) -> None:
    assert not refused(HERE, OperateVerb.OVERVIEW, {b"host": host})


@pytest.mark.parametrize("site", [b"cross-site", b"same-site", b"anything"])
@pytest.mark.parametrize("verb", sorted(set(OperateVerb) - FILES))
def test_a_browser_that_says_that_another_page_asks(verb: OperateVerb, site: bytes) -> None:
    assert "Sec-Fetch-Site" in refused(HERE, verb, {**MARK, b"sec-fetch-site": site})


def test_a_link_to_the_page_may_stand_anywhere() -> None:
    assert not refused(HERE, OperateVerb.PAGE, {b"sec-fetch-site": b"cross-site"})


@pytest.mark.parametrize("verb", sorted(CHANGES))
def test_a_change_needs_the_pages_own_header(verb: OperateVerb) -> None:
    assert "Trivium-Console: 1" in refused(HERE, verb, {})
    assert "Trivium-Console: 1" in refused(HERE, verb, OWN_PAGE)
    assert refused(HERE, verb, {b"trivium-console": b"0"})
    assert not refused(HERE, verb, MARK)
    assert not refused(HERE, verb, {**MARK, **OWN_PAGE})
    assert not refused(KEYED, verb, {})  # whoever shows a key is no page of another server


@pytest.mark.parametrize("verb", READS)
def test_who_may_look(verb: OperateVerb) -> None:
    for fields in ({}, OWN_PAGE, {b"sec-fetch-site": b"none"}):
        assert not refused(HERE, verb, fields)
        assert not refused(KEYED, verb, fields)
        assert "--keys" in refused(OPEN_TO_ALL, verb, fields)


def test_beyond_loopback_without_keys_there_is_the_page_and_nothing_on_it() -> None:
    assert not refused(OPEN_TO_ALL, OperateVerb.PAGE, {})
    for verb, fields in itertools.product(sorted(CHANGES), ({}, MARK, {**MARK, **OWN_PAGE})):
        assert refused(OPEN_TO_ALL, verb, fields)


def test_what_all_clients_may_ask_is_told_to_all_but_pages_of_others() -> None:
    for rule in (HERE, KEYED, OPEN_TO_ALL):
        assert not refused(rule, OperateVerb.DESCRIPTION, {})
    assert "Sec-Fetch-Site" in refused(
        OPEN_TO_ALL, OperateVerb.DESCRIPTION, {b"sec-fetch-site": b"cross-site"}
    )
