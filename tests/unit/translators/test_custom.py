"""Translators that lie beside their model: what they get, what they may return, and what becomes of their errors."""

import json
import re
import sys
import textwrap
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from tests.harness.virtual_models import make_spec

from trivium.translators.custom import KIND
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Raw, RawPart, Tensors
from trivium.types.running import Translated
from trivium.types.spec import TensorSpec, TranslatorSpec


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Open the class `T` of this text, whose methods are indented by nothing."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def open_(methods, inputs=("x",), extra_files="", damage=None, **arguments):
        name = f"translator_{abs(hash((str(tmp_path), methods)))}"
        body = textwrap.indent(textwrap.dedent(methods), "    ")
        (tmp_path / f"{name}.py").write_text(f"import numpy as np\n\n\nclass T:\n{body}\n")
        (tmp_path / "synset.txt").write_text("cat\ndog\n")
        specs = tuple(TensorSpec(each, DataType.FP32, (2,)) for each in inputs)
        wanted = TranslatorSpec("custom", arguments, f"{name}:T", (tmp_path,))
        with zipfile.ZipFile(tmp_path / "net.pt", "w") as archive:
            archive.writestr("net/extra/config.txt", '{"names": ["cat", "dog"]}')
            archive.writestr("net/extra/weights.bin", b"\xff")
        if damage is not None:
            (tmp_path / "net.pt").write_bytes(damage((tmp_path / "net.pt").read_bytes()))
        spec = replace(make_spec(inputs=specs, translator=wanted), root=tmp_path, entry="net.pt")
        if extra_files:
            spec = replace(spec, parameters={"extra_files": extra_files})
        return KIND.open(spec)

    return open_


def before(translator, data=b"1 2", kind="text/plain", name="", query=(), **properties):
    raw = Raw((RawPart(data, kind, name),), properties, query)
    (made,) = translator.before([Infer("m", raw)])
    return made


def after(translator, *arrays, state=None):
    outputs = Tensors.of({f"y{i}": array for i, array in enumerate(arrays)})
    return translator.after(Translated([], state), [outputs])


ECHO = """
def process_input(self, ctx, input):
    return [np.array(input.get_as_string().split(), "<f4")]

def process_output(self, ctx, arrays):
    return arrays[0].tolist()
"""


def test_arrays_are_inputs_in_order(opened):
    made = before(opened(ECHO))
    assert made.rows[0]["x"].tolist() == [1, 2]
    answer = after(opened(ECHO), np.ones(2, "<f4"))
    assert (answer.parts[0].data, answer.parts[0].content_type) == (b"[1.0, 1.0]", "application/json")


NAMED = """
def prepare(self, ctx):
    self.files = dict(ctx.extra_files)

def process_input(self, ctx, input):
    assert ctx.extra_files == self.files
    return [np.zeros(2, "<f4")]

def process_output(self, ctx, arrays):
    return self.files
"""


def test_it_has_the_texts_of_the_models_archive_that_are_named(opened):
    """PyTorch has an empty text for a name that is not in the archive, and so has this."""
    for asked, files in (
        ("", {}),
        ("config.txt, nowhere", {"config.txt": '{"names": ["cat", "dog"]}', "nowhere": ""}),
    ):
        translator = opened(NAMED, extra_files=asked)
        state = before(translator).state
        assert json.loads(after(translator, np.ones(2, "<f4"), state=state).parts[0].data) == files
    with pytest.raises(
        ServeError, match=r"extra files .* cannot be read from .*net\.pt: the extra file weights"
    ) as caught:
        opened(NAMED, extra_files="weights.bin")
    assert caught.value.code is Code.LOAD_FAILED


def encrypted(data):
    """An archive whose members say that they are encrypted, in both of their heads."""
    changed = bytearray(data)
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := changed.find(signature, at + 1)) >= 0:
            changed[at + place] |= 1
    return bytes(changed)


@pytest.mark.parametrize("damage", [encrypted, lambda data: data[: len(data) // 2], lambda data: b""])
def test_an_archive_that_is_encrypted_or_broken_fails_the_load_by_its_name(opened, damage):
    with pytest.raises(ServeError, match=r"extra files .* cannot be read from .*net\.pt") as caught:
        opened(NAMED, extra_files="config.txt", damage=damage)
    assert caught.value.code is Code.LOAD_FAILED


def test_it_is_prepared_once_with_the_files_and_the_arguments_of_its_model(opened):
    translator = opened(
        """
        def prepare(self, ctx):
            self.classes = ctx.artifact("synset.txt").read_text().split()
            self.model = ctx.model, ctx.arguments["topK"]

        def process_input(self, ctx, input):
            ctx.attachments["n"] = 7
            return {"x": np.zeros(2, "<f4")}

        def process_output(self, ctx, arrays):
            return [self.classes, self.model, ctx.attachments["n"]]
        """,
        topK="2",
    )
    made = before(translator)
    answer = after(translator, np.zeros(2, "<f4"), state=made.state)
    assert json.loads(answer.parts[0].data) == [["cat", "dog"], ["m", "2"], 7]


@pytest.mark.parametrize(("name", "words"), [("../secret", "leads out of"), ("nothing.txt", "has no file")])
def test_artifacts_are_files_of_the_folder(opened, name, words):
    with pytest.raises(ServeError, match=words) as caught:
        opened(f"def prepare(self, ctx):\n    ctx.artifact({name!r})\n" + ECHO)
    assert caught.value.code is Code.LOAD_FAILED


@pytest.mark.parametrize(
    ("made", "data", "kind"),
    [
        ('"nice"', b"nice", "text/plain"),
        ('{"a": np.float32(1), "b": np.arange(2)}', b'{"a": 1.0, "b": [0, 1]}', "application/json"),
        ('b"\\x89PNG\\r\\n\\x1a\\n"', b"\x89PNG\r\n\x1a\n", "image/png"),
        ("None", b"null", "application/json"),
    ],
)
def test_what_comes_back_is_the_body(opened, made, data, kind):
    part = after(opened(ECHO.replace("arrays[0].tolist()", made)), np.zeros(1)).parts[0]
    assert (part.data, part.content_type) == (data, kind)


def test_arrays_that_come_back_are_tensors(opened):
    answer = after(opened(ECHO.replace("arrays[0].tolist()", "[arrays[0], arrays[0]]")), np.ones(1, "<f4"))
    assert [one.name for one in answer.items] == ["arr_0", "arr_1"]


@pytest.mark.parametrize(
    ("made", "words"),
    [("object()", "no JSON can hold"), ("float('nan')", "no JSON can hold"), ("1/0", "ZeroDivision")],
)
def test_what_no_answer_can_be_is_the_translators_fault(opened, made, words):
    with pytest.raises(ServeError, match=words) as caught:
        after(opened(ECHO.replace("arrays[0].tolist()", made)), np.zeros(1))
    assert (caught.value.code, caught.value.reason) == (Code.MODEL_FAILED, "translation")


@pytest.mark.parametrize(
    ("line", "data", "code", "words"),
    [
        (
            "return 1/0",
            b"",
            Code.MODEL_FAILED,
            r"process_input raised ZeroDivisionError: .*translator_\d+.py:\d+",
        ),
        ("return 7", b"", Code.MODEL_FAILED, "returned int; expected are arrays"),
        ("return [np.zeros(2), np.zeros(2)]", b"", Code.MODEL_FAILED, "2 arrays; the model has 1 inputs: x"),
        ("return [np.zeros(2, 'c16')]", b"", Code.MODEL_FAILED, "complex128"),
        ("input.get_as_bytes()", b"", Code.INVALID, "Input data is empty."),
        ("input.get_as_json()", b"{", Code.INVALID, "Input is not a valid json."),
        ("input.get_as_string()", b"\xff", Code.INVALID, "no UTF-8 text"),
        ("input.get_as_bytes('data2')", b"1", Code.INVALID, "has no field 'data2'"),
        ("input.get_as_image()", b"1", Code.INVALID, "The picture cannot be read"),
    ],
)
def test_errors_are_those_of_the_request(opened, line, data, code, words):
    made = before(opened(f"def process_input(self, ctx, input):\n    {line}\n"), data)
    assert isinstance(made, ServeError)
    assert (made.code, made.reason) == (code, "translation")
    assert re.search(words, made.message), made.message


def test_fields_and_properties_are_there(opened):
    translator = opened(
        """
        def process_input(self, ctx, input):
            return [np.array([float(input.fields["width"]), float(input.properties["x-scale"])], "<f4")]
        """
    )
    made = before(translator, b"1", query=(("width", "3"), ("width", "4")), **{"x-scale": "5"})
    assert made.rows[0]["x"].tolist() == [3, 5]


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ("def prepare(self, ctx):\n    raise ValueError('no weights')\n", "ValueError: no weights"),
        ("x = 1/0", "Zero"),
    ],
)
def test_code_that_raises_fails_the_load(opened, methods, words):
    with pytest.raises(ServeError, match=words) as caught:
        opened(methods)
    assert caught.value.code is Code.LOAD_FAILED


def test_a_model_that_declares_no_inputs_gets_them_by_position(opened):
    made = before(opened(ECHO, inputs=()))
    assert [one.name for one in made.rows[0].items] == ["INPUT__0"]
