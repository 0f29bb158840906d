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
