"""What the package ships: the trained files, scored on pictures that no training has seen, and the pictures."""

import numpy as np
import onnxruntime
import pytest
from examples.digits import pictures
from examples.digits.split import held_out_part
from PIL import Image

from trivium.demo import places
from trivium.demo.classify import to_tensor
from trivium.engines.onnx.engine import ENGINE
from trivium.formats.bare import FORMAT as BARE
from trivium.servers.triton.repository.repository import FORMAT as TRITON
from trivium.types.findings import Severity
from trivium.types.spec import Batching, Defaults

PART = held_out_part()
MODEL = places.models() / "digits" / "1" / "model.onnx"


def scores(images):
    session = onnxruntime.InferenceSession(str(MODEL), providers=["CPUExecutionProvider"])
    return session.run(["probabilities"], {"image": images})[0]


def test_at_least_97_percent_of_the_held_out_pictures_are_right() -> None:
    assert len(PART.labels) > 300
    assert (scores(PART.tensor).argmax(axis=1) == PART.labels).mean() >= 0.97


def test_probabilities_sum_to_one_for_any_number_of_pictures() -> None:
    for count in (1, 3, 16):
        shares = scores(PART.tensor[:count])
        assert shares.shape == (count, 10)
        np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-5)


def test_both_files_are_the_same_and_small() -> None:
    assert places.bare_model().read_bytes() == MODEL.read_bytes()
    assert MODEL.stat().st_size < 150_000
    assert all(path.stat().st_size < 1_000 for path in places.pictures())


@pytest.mark.parametrize(
    ("reader", "path", "name", "batching"),
    [
        (TRITON, places.models(), "digits", Batching(True, 16, True)),
        (BARE, places.bare_model(), "digits-bare", Batching()),
    ],
    ids=["repository", "bare"],
)
def test_its_format_reads_it_and_agrees_with_the_file(reader, path, name, batching) -> None:
    assert reader.claims(path)
    reading = reader.read(path, Defaults())
    assert not reading.unreadable
    (spec,) = reading.specs
    finished = reader.finish(spec, ENGINE.facts(spec))
    assert (finished.name, finished.batching) == (name, batching)
    assert [tensor.name for tensor in finished.inputs + finished.outputs] == ["image", "probabilities"]
    assert not [finding for finding in finished.reports if finding.severity is Severity.ERROR]


@pytest.mark.parametrize("digit", range(10))
def test_a_picture_is_a_held_out_one_and_the_model_knows_it(digit) -> None:
    path = places.pictures()[digit]
    position = pictures.chosen(PART)[digit]
    assert path.name == f"digit-{digit}.png"
    assert PART.labels[position] == digit
    tensor = to_tensor(path)
    assert (tensor == PART.tensor[position : position + 1]).all()
    assert scores(tensor).argmax() == digit


def test_a_picture_is_large_enough_for_a_person() -> None:
    for path in places.pictures():
        with Image.open(path) as picture:
            assert (picture.size, picture.mode) == ((64, 64), "L")
