"""A generate request over HTTP takes fields that have no effect, where such are ignored; tensors stay strict."""

import json

import pytest

from trivium.codecs.generation import to_generate
from trivium.types.errors import ServeError
from trivium.types.ignored_fields import IgnoredFields
from trivium.types.payload import Raw, RawForm, RawPart


def asked(ignored, **fields):
    body = json.dumps({"text_input": "hi", **fields}).encode()
    raw = Raw((RawPart(body, "application/json"),), form=RawForm.FIELDS)
    return to_generate(raw, {}, "m", ignored)[0]


def test_unknown_fields_are_named():
    ignored = IgnoredFields()
    made = asked(ignored, chat_id="1", parameters={"min_p": 0.1, "priority_class": 3, "length_penalty": 2.0})
    assert made.sampling.min_p == 0.1
    assert list(ignored.found) == ["length_penalty", "chat_id", "priority_class"]
    packed = IgnoredFields()
    asked(packed, sampling_parameters='{"top_k": 3, "mood": 1}')
    assert list(packed.found) == ["sampling_parameters.mood"]


@pytest.mark.parametrize("field", ["guided_json", "bad_words", "num_beams", "logprobs"])
def test_what_would_change_the_meaning_is_refused(field):
    with pytest.raises(ServeError, match=f"'{field}'"):
        asked(IgnoredFields(), **{field: [1]})


def test_strict_requests_refuse_them():
    with pytest.raises(ServeError, match="'chat_id' is not known here"):
        asked(None, chat_id="1")
