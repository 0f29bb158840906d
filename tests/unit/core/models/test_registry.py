"""Who serves a request, and every sentence for one that nobody does."""

from dataclasses import replace

import pytest
from tests.harness.virtual_models import make_spec

from trivium.core.models.registry import Registry
from trivium.types.adapters import FUNCTIONS, found
from trivium.types.errors import Code, ServeError
from trivium.types.operations import VersionStatus
from trivium.types.payload import PayloadKind
from trivium.types.state import VERSION_MOVES, VersionState

S = VersionState


class Loaded:
    """Stands for a loaded model: the registry only asks whether it was given up."""

    spec = make_spec()
    groups = ()
    takes = frozenset()

    def obstacle(self):
        return ""


def registry(**versions):
    """Models by name, each with its ready versions."""
    made = Registry()
    for name, numbers in versions.items():
        for number in numbers:
            put(made, name, number)
    return made


def put(made, name, number):
    record = made.record(name, number)
    record.move(S.LOADING)
    loaded = Loaded()
    loaded.spec = replace(loaded.spec, version=number)
    made.publish(record, loaded)
    record.move(S.READY)
    return loaded


def refusal(made, name, version=""):
    with pytest.raises(ServeError) as caught:
        made.serving(name, version)
    return caught.value.code, caught.value.message


def test_without_a_version_the_greatest_ready_one_serves():
    made = Registry()
    old, new, middle = (put(made, "m", number) for number in ("1", "10", "9"))
    assert made.serving("m") is new
    assert made.serving("m", "1") is old
    assert made.ready_versions("m") == ("1", "9", "10")
    made.withdraw(made.record("m", "10"))
    assert made.serving("m") is middle


def test_publishing_returns_who_served_before():
    made = Registry()
    old = put(made, "m", "1")
    new = Loaded()
    assert made.publish(made.record("m", "1"), new) is old
    assert made.serving("m") is new
    assert made.withdraw(made.record("m", "1")) is new
    assert made.withdraw(made.record("m", "1")) is None


@pytest.mark.parametrize(
    ("made", "name", "version", "code", "said"),
    [
        (registry(), "m", "", Code.NOT_FOUND, "There is no model 'm'. This server has no models."),
        (
            registry(digits="1"),
            "digts",
            "",
            Code.NOT_FOUND,
            "There is no model 'digts'. Did you mean 'digits'?",
        ),
        (registry(b="1", a="1"), "zzz", "2", Code.NOT_FOUND, "There is no model 'zzz'. There are: a, b."),
        (registry(m=["2", "10"]), "m", "3", Code.NOT_FOUND, "Model 'm' has no version 3; it has: 2, 10."),
    ],
)
def test_what_is_not_there(made, name, version, code, said):
    assert refusal(made, name, version) == (code, said)


MOVES = {
    "registered": ((), "Model 'm' version 1 does not serve; it is registered."),
    "loading": ((S.LOADING,), "Model 'm' version 1 does not serve; it is loading."),
    "failed": ((S.LOADING, S.FAILED), "Model 'm' version 1 does not serve; it is failed: No file."),
    "unloading": ((S.LOADING, S.READY, S.UNLOADING), "Model 'm' version 1 does not serve; it is unloading."),
}


@pytest.mark.parametrize("name", MOVES)
def test_what_is_there_and_does_not_serve(name):
    moves, said = MOVES[name]
    made = Registry()
    record = made.record("m", "1")
    for state in moves:
        record.move(state, "No file." if state is S.FAILED else "")
    assert refusal(made, "m", "1") == (Code.NOT_READY, said)
    assert refusal(made, "m") == (Code.NOT_READY, said)


def test_the_version_spoken_of_is_the_greatest():
    made = Registry()
    for number in ("2", "10", "9"):
        made.record("m", number)
    assert refusal(made, "m")[1].startswith("Model 'm' version 10 ")


def test_records_and_listing_are_sorted():
    made = registry(b=["10", "9"], a=["1"])
    assert [(r.name, r.version) for r in made.records()] == [("a", "1"), ("b", "9"), ("b", "10")]
    assert [r.version for r in made.records("b")] == ["9", "10"]
    assert made.records("c") == []
    (row,) = made.listing("a").versions
    assert row == VersionStatus("a", "1", S.READY, is_loaded=True, is_default=True)
    assert made.record("a", "1") is made.records("a")[0]


def test_the_default_version_is_kept_whatever_is_added():
    made = registry(m=["1"])
    made.keep_default("m")
    put(made, "m", "2")
    assert made.default_version("m") == "1"
    assert [row.is_default for row in made.listing("m").versions] == [True, False]
    made.pin("m", "2")
    made.keep_default("m")
    assert made.default_version("m") == "2"


def test_what_is_forgotten_is_not_there():
    made = registry(m=["1", "2"])
    for number in ("2", "1"):
        record = made.record("m", number)
        made.withdraw(record)
        made.forget(record)
    assert made.records() == []
    assert refusal(made, "m")[0] is Code.NOT_FOUND


@pytest.mark.parametrize("to", VersionState)
@pytest.mark.parametrize("now", VersionState)
def test_states_move_by_the_table_only(now, to):
    record = Registry().record("m", "1")
    record.state, record.reason = now, "before"
    if to in VERSION_MOVES[now]:
        record.move(to, "why")
        assert (record.state, record.reason) == (to, "why")
    else:
        with pytest.raises(AssertionError, match=f"from {now.value} to {to.value}"):
            record.move(to)
        assert (record.state, record.reason) == (now, "before")


def aliased(made, name, *aliases):
    loaded = put(made, name, "1")
    loaded.spec = replace(loaded.spec, name=name, aliases=aliases)
    made.publish(made.record(name, "1"), loaded)
    return loaded


def test_a_model_is_found_by_another_name_that_is_its_alone():
    made = Registry()
    first, second = aliased(made, "a", "lmi", "both"), aliased(made, "b", "both", "a")
    assert made.serving("lmi") is made.serving("lmi", "1") is first
    assert made.serving("a") is first, "a model's own name goes before an alias"
    assert (made.own_name("lmi"), made.own_name("a"), made.own_name("x")) == ("a", "a", "x")
    assert refusal(made, "lmi", "2")[0] is Code.NOT_FOUND
    code, said = refusal(made, "both")
    assert (code, said) == (Code.NOT_FOUND, "'both' is a name of several models: a, b. Name one of them.")
    made.withdraw(made.record("b", "1"))
    assert made.serving("both") is first
    made.publish(made.record("b", "1"), second)
    made.withdraw(made.record("a", "1"))
    assert made.serving("both") is second
    assert refusal(made, "lmi")[0] is Code.NOT_FOUND


def test_a_listing_says_what_a_model_takes_and_how_it_is_called():
    made = Registry()
    aliased(made, "a", "lmi")
    (row,) = made.listing().versions
    assert (row.aliases, row.takes, row.context) == (("lmi",), frozenset(), 0)


def adapted(made, name, *adapters, takes=PayloadKind.GENERATE):
    """A model with adapters."""
    loaded = Loaded()
    loaded.spec = replace(loaded.spec, name=name, functions=FUNCTIONS)
    loaded.takes = frozenset({takes})
    loaded.standing = tuple(found(adapter, f"/{adapter}") for adapter in adapters)
    record = made.record(name, "1")
    record.move(S.LOADING)
    made.publish(record, loaded)
    record.move(S.READY)
    return loaded


def test_an_adapters_name_means_the_model_that_has_it():
    made = registry(plain=["1"])
    llm = adapted(made, "llm", "eng", "plain", "both")
    adapted(made, "other", "both")
    adapted(made, "handler", "mine", takes=PayloadKind.RAW)
    assert made.serving("eng") is llm
    assert (made.own_name("eng"), made.adapter_meant("eng")) == ("llm", "eng")
    assert made.serving("plain").spec.name != "llm"
    assert made.adapter_meant("plain") == made.adapter_meant("llm") == made.adapter_meant("none") == ""
    assert refusal(made, "both") == (
        Code.NOT_FOUND,
        "'both' is a name of several models: llm, other. Name one of them.",
    )
    assert refusal(made, "mine")[0] is Code.NOT_FOUND
    (row,) = made.listing("llm").versions
    assert [call.topic for call in row.adapters] == ["eng", "plain", "both"]
    made.withdraw(made.record("llm", "1"))
    assert refusal(made, "eng")[0] is Code.NOT_FOUND
    assert made.serving("both").spec.name == "other"
