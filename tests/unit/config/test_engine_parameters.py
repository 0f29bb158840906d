"""--engine-parameters: what is read, and what is refused with how it is written."""

import pytest

from trivium.config.engine_parameters import parse_engine_parameters
from trivium.types.errors import Code, ServeError
from trivium.types.spec import Defaults


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("hf.slots=8", {"hf.slots": "8"}),
        (" hf.slots = 8 ,, onnx.a.b=c=d,", {"hf.slots": "8", "onnx.a.b": "c=d"}),
        ("hf.dtype=", {"hf.dtype": ""}),
    ],
)
def test_what_is_read(text: str, found: dict[str, str]) -> None:
    assert parse_engine_parameters(text) == found


@pytest.mark.parametrize("text", ["slots=8", "hf.slots", "hf.=8", "HF.x=1", "hf.a=1,hf.a=2", "a b.c=1"])
def test_what_is_refused(text: str) -> None:
    with pytest.raises(ServeError) as caught:
        parse_engine_parameters(text)
    assert caught.value.code is Code.INVALID
    assert "--engine-parameters" in caught.value.message


def test_each_engine_has_its_own() -> None:
    defaults = Defaults(engine_parameters={"hf.slots": "8", "onnx.slots": "9", "hf2.x": "1"})
    assert defaults.parameters_of("hf") == {"slots": "8"}
    assert defaults.parameters_of("torch") == {}
