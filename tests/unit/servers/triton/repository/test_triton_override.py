"""Model folders laid out for one load: what is sent, what is linked, and what is refused."""

import json

import pytest

from trivium.servers.triton.repository.override import config_text
from trivium.servers.triton.repository.repository import FORMAT
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Load
from trivium.types.spec import Defaults

CONFIG = {
    "backend": "identity",
    "max_batch_size": "8",
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": ["4"]}],
    "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [4], "label_filename": "labels.txt"}],
    "parameters": {"Grüße": {"string_value": 'a "quoted"\n\\ text'}},
}


@pytest.fixture
def source(tmp_path):
    root = tmp_path / "models"
    (root / "m" / "1").mkdir(parents=True)
    (root / "m" / "1" / "data").write_text("d")
    (root / "m" / "labels.txt").write_text("cat\ndog\n")
    (root / "m" / "config.pbtxt").write_text("max_batch_size: 1")
    return root


@pytest.fixture
def into(tmp_path):
    folder = tmp_path / "into"
    folder.mkdir()
    return folder


def read(load, source, into):
    reading = FORMAT.read(FORMAT.override(load, source, into), Defaults())
    assert not reading.unreadable, reading.unreadable
    return reading.specs


def test_another_configuration_beside_the_files_that_there_are(source, into):
    (spec,) = read(Load("m", json.dumps(CONFIG)), source, into)
    assert (spec.name, spec.version, spec.batching.max_rows) == ("m", "1", 8)
    assert spec.outputs[0].labels == ("cat", "dog")
    assert dict(spec.parameters) == {"Grüße": 'a "quoted"\n\\ text'}
    assert (spec.root / "data").read_text() == "d"
    assert (source / "m" / "config.pbtxt").read_text() == "max_batch_size: 1"


def test_the_source_may_be_the_model_itself(source, into):
    assert read(Load("m", json.dumps(CONFIG)), source / "m", into)[0].batching.max_rows == 8


def test_sent_files_are_all_that_there_is(source, into):
    files = {"3/data": b"sent", "labels.txt": b"newt\n", "3/deep/er": b""}
    (spec,) = read(Load("m", json.dumps(CONFIG), files), source, into)
    assert (spec.version, spec.outputs[0].labels) == ("3", ("newt",))
    assert (spec.root / "data").read_bytes() == b"sent"
    assert not (into / "m" / "1").exists()


@pytest.mark.parametrize(
    "name", ["/3/data", "//3/data", "./3/data", "/3//data", "3/deep/../data", "/3/./data"]
)
def test_a_sent_file_s_name_begins_at_the_model_s_folder(source, into, name):
    files = {"/labels.txt": b"newt\n", "3/data": b"before", name: b"sent"}
    (spec,) = read(Load("m", json.dumps(CONFIG), files), source, into)
    assert (spec.version, spec.outputs[0].labels) == ("3", ("newt",))
    assert (spec.root / "data").read_bytes() == b"sent", "of two for one file the later counts"


def test_a_model_that_no_folder_holds(source, into):
    assert (
        read(Load("new", json.dumps(CONFIG), {"1/x": b"", "labels.txt": b""}), source, into)[0].name == "new"
    )


@pytest.mark.parametrize(
    ("load", "code", "words"),
    [
        (Load("new", "{}"), Code.NOT_FOUND, "no folder of model 'new'"),
        (Load("..", "{}"), Code.INVALID, "'..' is no path"),
        (Load("a/b", "{}"), Code.INVALID, "is no path"),
        (Load("", "{}"), Code.INVALID, "is no path"),
        (Load("m", "{}", {"../x": b""}), Code.INVALID, "'../x' is no path"),
        (Load("m", "{}", {"/../x": b""}), Code.INVALID, "'/../x' is no path"),
        (Load("m", "{}", {"1/../../x": b""}), Code.INVALID, "is no path"),
        (Load("m", "{}", {"": b""}), Code.INVALID, "'' is no path"),
        (Load("m", "{}", {"/": b""}), Code.INVALID, "'/' is no path"),
        (Load("m", "{}", {"1/": b""}), Code.INVALID, "'1/' names a folder"),
        (Load("m", "{}", {"1/" + "n" * 256: b""}), Code.INVALID, "is no path"),
        (Load("m", "{}", {"1/\0": b""}), Code.INVALID, "is no path"),
        (Load("m", "{}", {"a/" * 6000 + "x": b""}), Code.INVALID, "has 6001 parts"),
        (Load("m", "{}", {("n" * 250 + "/") * 30 + "x": b""}), Code.INVALID, "longer than the system"),
        (Load("m", "{}", {"1/\ud800": b""}), Code.INVALID, "is no path"),
        (Load("m", "{}", {"1": b"", "1/x": b""}), Code.INVALID, "as a file and as a folder"),
        (Load("m", "{}", {"1/x": b"", "1": b""}), Code.INVALID, "as a file and as a folder"),
    ],
)
def test_what_is_refused(source, into, load, code, words):
    with pytest.raises(ServeError) as caught:
        FORMAT.override(load, source, into)
    assert (caught.value.code, words in caught.value.message) == (code, True), caught.value.message


@pytest.mark.parametrize(
    "document",
    ["", "{", "[]", "1", '{"nam": 1}', '{"max_batch_size": "x"}', "[" * 9999, '{"name": "\ud800"}'],
)
def test_what_is_no_configuration(document):
    with pytest.raises(ServeError) as caught:
        config_text(document)
    assert caught.value.code is Code.INVALID
    assert len(caught.value.message) < 1000
