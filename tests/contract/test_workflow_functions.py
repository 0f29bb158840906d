"""Functions of workflows in real workers: lists there and back, what fails, what the server counts of them."""

import asyncio
import json

import numpy as np
import pytest

from trivium import catalogue
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, Statistics
from trivium.types.payload import PayloadKind, Raw, RawPart, Tensors

GLUE = """
import os
from djl_python import Output

def split(one):
    return [Output().add(word).add_property("x-word", word) for word in one.get_as_string().split(",")]

def shown(words):
    if not isinstance(words, list):
        return "one"
    return [[word.get_as_string(), word.get_property("x-word")] for word in words]

def nested(lists):
    return [[word.get_as_string() for word in words] for words in lists]

def summed(one):
    return [array.tolist() for array in one.get_as_numpy()]

def dies(one):
    os._exit(3)

def raises(one):
    raise ValueError("as told")
"""


def document(out, *names):
    return {"functions": {name: f"glue:{name}" for name in names}, "workflow": {"out": out}}


def answered(tmp_path, written, payload, play=None):
    """What a workflow of functions answers to one request."""
    (tmp_path / "glue.py").write_text(GLUE)
    (tmp_path / "serving.properties").write_text("maxWorkers=1\n")
    (tmp_path / "workflow.json").write_text(json.dumps({"name": "w", **written}))

    async def scene():
        async with catalogue.serving(tmp_path) as server:
            answer = (await server.execute(Infer("w", payload, wants=PayloadKind.RAW))).payload
            return answer if play is None else await play(server, answer)

    return asyncio.run(scene())


def body(text):
    return Raw((RawPart(text.encode(), "text/plain"),))


def told(answer):
    return json.loads(bytes(answer.parts[0].data))


def test_a_list_goes_from_function_to_function(tmp_path):
    answer = answered(tmp_path, document(["shown", ["split", "in"]], "split", "shown"), body("a,b"))
    assert told(answer) == [["a", "a"], ["b", "b"]]


def test_lists_of_lists(tmp_path):
    out = ["nested", ["functionsApply", ["split", "split"], "in"]]
    assert told(answered(tmp_path, document(out, "split", "nested"), body("a,b"))) == [["a", "b"], ["a", "b"]]


def test_tensors_are_seen_as_an_ndlist(tmp_path):
    answer = answered(tmp_path, document(["summed", "in"], "summed"), Tensors.of({"x": np.ones((2,), "<f4")}))
    assert told(answer) == [[1.0, 1.0]]


def test_functions_are_counted_like_models(tmp_path):
    async def play(server, answer):
        return {one.model: one.success.count for one in (await server.execute(Statistics())).answer.versions}

    found = answered(tmp_path, document(["shown", ["split", "in"]], "split", "shown"), body("a,b"), play)
    assert found == {"w": 1, "w:split": 1, "w:shown": 1}


@pytest.mark.parametrize(
    ("out", "names", "code", "words"),
    [
        (["split", "in"], ["split"], Code.MODEL_FAILED, "is a list of 2, and an answer is one"),
        (["raises", "in"], ["raises"], Code.MODEL_FAILED, "step 'w:raises': as told"),
        (["dies", "in"], ["dies"], Code.WORKER_DIED, "step 'w:dies'"),
    ],
)
def test_what_fails_names_the_step(tmp_path, out, names, code, words):
    with pytest.raises(ServeError) as caught:
        answered(tmp_path, document(out, *names), body("a,b"))
    assert caught.value.code is code
    assert words in caught.value.message
