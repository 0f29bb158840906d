"""What becomes of a model whose source asks for another name, version or setting."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.virtual_models import make_spec

from trivium.core.models.source_policy import applied
from trivium.types.findings import Finding, Severity
from trivium.types.sources import ModelSource, SourceSetting
from trivium.types.spec import InvalidModel, Origin, ReadResult

ONE = make_spec()
TWO = replace(ONE, version="2")
OTHER = replace(ONE, name="n")


def test_one_model_takes_a_name_and_a_version() -> None:
    (spec,) = applied(ReadResult((ONE,)), ModelSource("p", "x", "7")).specs
    assert (spec.name, spec.version) == ("x", "7")
    assert [s.name for s in applied(ReadResult((ONE, TWO)), ModelSource("p", "x")).specs] == ["x", "x"]
    assert applied(ReadResult((ONE, OTHER)), ModelSource("p")).specs == (ONE, OTHER)


def test_what_cannot_be_read_takes_the_name_too() -> None:
    broken = InvalidModel("m", Path("p"), (Finding(Severity.ERROR, "f", 1, "k", "wrong"),))
    assert applied(ReadResult((), (broken,)), ModelSource("p", "x")).unreadable[0].name == "x"


@pytest.mark.parametrize(
    ("specs", "source", "key", "found"),
    [
        ((ONE, OTHER), ModelSource("p", "x"), "name", "the name x for 2 models"),
        ((ONE, TWO), ModelSource("p", "", "7"), "version", "version 7 for 2 versions"),
        (
            (ONE,),
            ModelSource("p", engine="torch"),
            "engine",
            "engine torch, where the files ask for identity",
        ),
        ((ONE,), ModelSource("p", devices=("gpu0",)), "devices", "gpu0"),
        ((ONE,), ModelSource("p", over={"a": SourceSetting("1", Origin("q", "a", 3))}), "a", "a=1"),
        ((ONE,), ModelSource("p", under={"b": SourceSetting("2", Origin("e", "b"))}), "b", "b=2"),
    ],
)
def test_what_cannot_be_taken_is_a_finding(specs, source, key, found) -> None:
    reading = applied(ReadResult(specs), source)
    assert reading.specs == ()
    for invalid in reading.unreadable:
        assert [(one.severity, one.key, one.found) for one in invalid.findings] == [
            (Severity.ERROR, key, found)
        ]


def test_the_engine_of_the_files_may_be_named() -> None:
    assert applied(ReadResult((ONE,)), ModelSource("p", engine="identity")).specs == (ONE,)


NAMED = replace(ONE, origin={"name": Origin("flow.json", "name", 1)})


def test_files_that_name_their_model_go_before_a_name_that_nobody_chose() -> None:
    source = ModelSource("p/x", "x", "7", is_named_after_uri=True)
    assert applied(ReadResult((NAMED,)), source, True).specs[0].name == ONE.name
    assert applied(ReadResult((NAMED,)), source).specs[0].name == "x"
    assert applied(ReadResult((ONE,)), source, True).specs[0].name == "x"
    assert applied(ReadResult((NAMED,)), replace(source, is_named_after_uri=False), True).specs[0].name == "x"


def test_a_version_in_the_files_stays_where_the_format_takes_settings() -> None:
    source = ModelSource("p", version="7")
    assert applied(ReadResult((ONE,)), source, True).specs[0].version == ONE.version
    free = replace(ONE, is_versioned=False)
    assert applied(ReadResult((free,)), source, True).specs[0].version == "7"


def test_sources_are_equal_where_what_they_ask_for_is() -> None:
    one, other = (
        ModelSource("p", over={"a": SourceSetting("1", Origin(file, "a", line))})
        for file, line in (("x", 1), ("y", 2))
    )
    assert one == other
    assert one != replace(one, over={"a": SourceSetting("2", Origin("x", "a", 1))})
