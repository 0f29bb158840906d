"""Tables of what a request may say of a model's settings: nothing by which code in its files runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from trivium.core.models.trust_policy import check_sent, check_source
from trivium.types.errors import Code, ServeError
from trivium.types.sources import ModelSource, SourceSetting
from trivium.types.spec import ModelSpec, Origin
from trivium.types.trust import TRUSTS, trusts_among
from trivium_worker.estimators import TRUST, TYPES

SPEC = ModelSpec("m", "1", Path("m"), "sklearn", "model.pkl")


def source(key: str, value: str, is_named: bool = False) -> ModelSource:
    return ModelSource("/m", over={key: SourceSetting(value, Origin("a request", ""))}, is_named=is_named)


def test_the_words_of_the_worker_are_among_them() -> None:
    assert {TRUST, TYPES} <= TRUSTS


@pytest.mark.parametrize("prefix", ["", "option.", "OPTION.", "sklearn."])
@pytest.mark.parametrize("name", sorted(TRUSTS))
def test_a_trust_is_found_whatever_stands_in_front(name: str, prefix: str) -> None:
    assert trusts_among([prefix + name, "option.batch_size", (prefix + name).upper()]) == [
        prefix + name,
        (prefix + name).upper(),
    ]


@pytest.mark.parametrize("name", sorted(TRUSTS))
def test_a_request_s_source_names_none(name: str) -> None:
    with pytest.raises(ServeError) as caught:
        check_source(source(f"option.{name}", "true"))
    assert caught.value.code is Code.FORBIDDEN
    assert name in caught.value.message


@pytest.mark.parametrize(
    "asked",
    [
        source("option.trust_remote_code", "true", is_named=True),
        source("option.trust_remote_code", "False"),
        source("batch_size", "true"),
    ],
)
def test_what_the_operator_names_or_what_trusts_nothing_passes(asked: ModelSource) -> None:
    check_source(asked)


@pytest.mark.parametrize(
    ("sent", "own", "passes"),
    [
        ({TRUST: "true"}, {}, False),
        ({TRUST: "true"}, {TRUST: "false"}, False),
        ({TRUST: "true"}, {TRUST: "true"}, True),
        ({TYPES: "a.B,c.D"}, {TYPES: "a.B"}, False),
        ({TRUST: "false", "threads": "2"}, {}, True),
    ],
)
def test_a_sent_configuration_has_the_trust_of_the_model_s_own(
    sent: dict[str, str], own: dict[str, str], passes: bool
) -> None:
    specs = [replace(SPEC, parameters=sent)]
    if passes:
        check_sent(specs, {"1": own})
        return
    with pytest.raises(ServeError, match="No request may say so"):
        check_sent(specs, {"1": own})
