"""The parameters of a language model: their defaults, ranges, and what means nothing."""

from dataclasses import replace

import pytest
from tests.harness.virtual_models import make_spec

from trivium.engines.hf.options import SETTINGS, GenerationOptions, options, unknown
from trivium.types.errors import Code, ServeError
from trivium.types.spec import Origin


def told(**parameters):
    return replace(make_spec(), parameters=parameters)


def test_nothing_said_is_the_defaults():
    assert options(told()) == GenerationOptions()


def test_what_is_said_is_taken():
    found = options(
        told(
            slots="8",
            prefill_chunk=" 64",
            max_context="128",
            dtype="BF16",
            threads="2",
            trust_remote_code="True",
            logits_processors="even = own.py:Even; odd=own.py:odd;",
        )
    )
    named = {"even": "own.py:Even", "odd": "own.py:odd"}
    assert found == GenerationOptions(8, 64, 128, "bf16", 2, True, named)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("slots", value) for value in ("0", "-1", "many", "1.5", "", "1025", "9" * 5000, "²")),
        *(("prefill_chunk", "0"), ("max_context", "1"), ("threads", "10000")),
        *(("dtype", "int8"), ("trust_remote_code", "maybe")),
        *(
            ("logits_processors", value)
            for value in (
                *("own.py:Even", "even=own.py", "even=../own.py:Even", "even=a/own.py:Even", "even=own:Even"),
                *(
                    "even=own.py:Even;even=own.py:Odd",
                    "even=own.py:os.system",
                    "a b=own.py:Even",
                    "=own.py:E",
                ),
            )
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_name_and_place(name, value):
    spec = replace(told(**{name: value}), origin={f"parameters[{name}]": Origin("model.toml", name, 3)})
    with pytest.raises(ServeError, match=rf"parameter '{name}' is '.*' \(model.toml:3") as caught:
        options(spec)
    assert caught.value.code is Code.LOAD_FAILED


def test_what_means_nothing_is_told_with_the_near_name():
    (text,) = unknown({"slot": "3", "slots": "3"})
    assert "'slot' has no meaning" in text
    assert "Did you mean 'slots'?" in text


def test_every_option_is_described_and_has_the_default_that_counts():
    assert {row.name for row in SETTINGS if row.help} == set(GenerationOptions.__dataclass_fields__)
    for row in SETTINGS:
        assert row.default == "" or row.default == getattr(GenerationOptions(), row.name)


def test_what_protocols_read_is_not_unknown():
    assert (
        unknown({"output_formatter": "sse", "tgi_compat": "true", "end_of_stream_token": "x", "slots": "1"})
        == ()
    )
