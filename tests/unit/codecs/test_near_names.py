"""A name that means the same goes before one that looks like it."""

import pytest

from trivium.codecs.near_names import SYNONYMS, near, synonym
from trivium.settings.judging import meant_by

KNOWN = ("max_new_tokens", "max_model_len", "response_format", "min_length", "max_lengths")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("max_length", "max_new_tokens"),
        ("MAX_LENGTH", "max_new_tokens"),
        ("max-length", "max_new_tokens"),
        ("num_ctx", "max_model_len"),
        ("guided_json", "response_format"),
        ("min_lengt", "min_length"),
        ("colour", ""),
    ],
)
def test_the_table_goes_before_the_likeness(name: str, meant: str) -> None:
    assert meant_by(name, KNOWN) == meant
    assert near(name.lower(), KNOWN) == meant


def test_a_beginning_with_a_dot_is_kept() -> None:
    known = ("option.max_model_len", "max_model_len")
    assert synonym("option.num_ctx", known) == "option.max_model_len"
    assert synonym("other.num_ctx", known) == ""


def test_what_is_not_known_there_is_never_named() -> None:
    assert synonym("max_length", ("max_model_len",)) == "max_model_len"
    assert all(synonym(name, ()) == "" for name in SYNONYMS)
    assert all(name not in others for name, others in SYNONYMS.items())
