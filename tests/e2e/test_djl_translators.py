"""The rest of DJL's guide *Operation Modes*, after `trivium link`: packages with translators, and one of one's own.

Commands are the guide's but for the downloads, which small models stand in for.
"""

import io
import json
import os
import shlex
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import urllib3
from PIL import Image
from tests.harness.commands import trivium
from tests.harness.djl_serving import DjlServing, djl_serving
from tests.harness.server_process import SECONDS
from tests.models import train

from trivium import ndlist

torch = pytest.importorskip("torch")

QUESTION = r"""curl -k -X POST http://127.0.0.1:8080/predictions/bert-base-cased-squad2 \
    -H "Content-Type: application/json" \
    -d '{"question": "How is the weather", "paragraph": "The weather is nice, it is beautiful day"}'"""
QUESTIONS = """
engine=PyTorch
option.modelName=bert-base-cased-squad2
option.mapLocation=true
translatorFactory=ai.djl.huggingface.translator.QuestionAnsweringTranslatorFactory
includeTokenTypes=True
"""
FEATURES = """
engine=PyTorch
width=224,
height=224,
resize=256,
centerCrop=true,
normalize=true,
translatorFactory=ai.djl.modality.cv.translator.ImageFeatureExtractorFactory
option.mapLocation=true
"""
JAVA = "public class CustomTranslator implements ServingTranslator { }\n"
PORT = """
from trivium.translators.kit import center_crop, classifications, resize, softmax, to_tensor

class CustomTranslator:
    def prepare(self, ctx):
        self.classes = ctx.artifact("synset.txt").read_text().splitlines()

    def process_input(self, ctx, input):
        return [to_tensor(resize(center_crop(input.get_as_image()), 224, 224))]

    def process_output(self, ctx, arrays):
        return classifications(self.classes, softmax(arrays[0]))
"""
CLASSES = ("tabby", "tiger cat", "lynx", "dog", "plane", "car")
IMAGE = 'curl -X POST "http://127.0.0.1:8080/predictions/{}" -T "kitten.jpg"'


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> str:
    """`djl-serving` as `trivium link` puts it there."""
    place = tmp_path_factory.mktemp("bin")
    assert trivium("link", place).returncode == 0
    found = shutil.which("djl-serving", path=f"{place}{os.pathsep}{os.environ['PATH']}")
    assert found
    return found


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Where the guide's commands are typed; it has a picture."""
    pixels = np.linspace(0, 255, 300 * 200 * 3).astype("u1").reshape(200, 300, 3)
    Image.fromarray(pixels).save(tmp_path / "kitten.jpg")
    return tmp_path


@contextmanager
def serving(command: str, here: Path, url: str, status: int = 0) -> Iterator[DjlServing]:
    """`djl-serving -m` of the guide."""
    with djl_serving(here / "log", "-m", url, command=[command], status=status) as server:
        yield server


def typed(server: DjlServing, here: Path, line: str, *more: str) -> bytes:
    """What a line of the guide prints, with the port of this server."""
    words = [word.replace(":8080/", f":{server.port}/") for word in shlex.split(line.replace("\\\n", " "))]
    done = subprocess.run(
        [words[0], "-s", *words[1:], *more], cwd=here, capture_output=True, timeout=SECONDS, check=True
    )
    return done.stdout


def lay_out(here: Path, name: str, properties: str = "", **files: str) -> Path:
    place = here / name
    place.mkdir()
    if properties:
        (place / "serving.properties").write_text(properties.lstrip())
    for file, text in files.items():
        path = place / file.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return place


def zipped(place: Path) -> None:
    with zipfile.ZipFile(place.with_suffix(".zip"), "w") as archive:
        for file in place.iterdir():
            archive.write(file, file.name)


def resnet(path: Path, outputs: int, **extra_files: str) -> None:
    """A stand-in for a network on pictures: the mean of each of `outputs` patches, as TorchScript that was traced."""
    side = int(outputs**0.5) if int(outputs**0.5) ** 2 == outputs else 1
    size = (side, side) if side > 1 else (1, outputs)
    layers = torch.nn.Sequential(
        torch.nn.AdaptiveAvgPool2d(size), torch.nn.Flatten(2), torch.nn.AdaptiveAvgPool2d((1, outputs))
    )
    module = torch.nn.Sequential(layers, torch.nn.Flatten())
    torch.jit.trace(module.eval(), torch.zeros(1, 3, 224, 224)).save(str(path), _extra_files=extra_files)


def test_the_question_answering_package(command: str, here: Path) -> None:
    place = lay_out(here, "bert-base-cased-squad2", QUESTIONS)
    for file in train.QUESTIONS.iterdir():
        name = f"{place.name}.pt" if file.suffix == ".pt" else file.name
        if file.suffix != ".onnx":
            shutil.copy(file, place / name)
    zipped(place)
    url = f"bert-base-cased-squad2=file://{here}/bert-base-cased-squad2.zip"
    with serving(command, here, url) as server:
        assert typed(server, here, QUESTION) == b"nice"
        assert json.loads(typed(server, here, QUESTION, "-H", "Accept: application/json")) == {
            "answer": "nice"
        }


def test_the_image_features_package(command: str, here: Path) -> None:
    place = lay_out(here, "resnet18_embedding", FEATURES)
    resnet(place / "resnet18_embedding.pt", 16)
    zipped(place)
    url = f"resnet18_embedding::PyTorch=file://{here}/resnet18_embedding.zip"
    with serving(command, here, url) as server:
        features = json.loads(typed(server, here, IMAGE.format("resnet18_embedding")))
        assert len(features) == 16
        assert all(isinstance(one, float) for one in features)
        log = server.said()
    for key in ("width", "height", "resize", "centerCrop", "normalize"):
        assert f"{key}" in log, log
        assert "ends in a comma" in log


def test_a_translator_in_java_is_refused_with_its_port_and_served_once_ported(
    command: str, here: Path
) -> None:
    files = {"synset_txt": "\n".join(CLASSES) + "\n", "libs__classes__CustomTranslator_java": JAVA}
    place = lay_out(here, "resnet18", **files)
    resnet(place / "resnet18.pt", len(CLASSES))
    checked = trivium("check", place)
    assert checked.returncode == 1
    said = " ".join(checked.stdout.split())
    for words in (
        "libs/classes/CustomTranslator.java",
        "does not run here",
        "translator.py",
        "process_input",
    ):
        assert words in said, checked.stdout
    (place / "translator.py").write_text(PORT)
    with serving(command, here, f"resnet::PyTorch=file://{here}/resnet18") as server:
        rows = json.loads(typed(server, here, IMAGE.format("resnet")))
        assert [set(row) for row in rows] == [{"className", "probability"}] * 5
        assert rows == sorted(rows, key=lambda row: -row["probability"])
        assert {row["className"] for row in rows} <= set(CLASSES)
        refused = server.infer("POST", "/predictions/resnet", b"no picture")
        assert (refused.status, refused.document["type"]) == (400, "TranslateException")


IN_THE_ARCHIVE = PORT.replace(
    'ctx.artifact("synset.txt").read_text().splitlines()',
    'json.loads(ctx.extra_files["config.txt"])["names"]',
)


def test_class_names_that_lie_in_the_models_archive(command: str, here: Path) -> None:
    """As exporters of YOLO write them; DJL has them as properties of the model."""
    lines = "engine=PyTorch\noption.mapLocation=true\noption.extraFiles=config.txt,lost.txt\n"
    place = lay_out(here, "named", lines, translator_py="import json\n" + IN_THE_ARCHIVE)
    resnet(place / "named.pt", len(CLASSES), **{"config.txt": json.dumps({"stride": 32, "names": CLASSES})})
    said = " ".join(trivium("check", place).stdout.split())
    assert "lacks the extra files lost.txt (it has config.txt)" in said
    with serving(command, here, f"file://{place}") as server:
        rows = json.loads(typed(server, here, IMAGE.format("named")))
        assert {row["className"] for row in rows} <= set(CLASSES)


NPZ_CLIENT = """
http = urllib3.PoolManager()
response = http.request('POST', 'http://localhost:8080/predictions/resnet', headers={'Content-Type': 'tensor/npz'},
                        body=outfile.read())
"""


def test_binary_mode(command: str, here: Path) -> None:
    """An NDList by curl, an npz by the guide's client; the archive that names Python is told which engine it means."""
    place = lay_out(here, "resnet18")
    resnet(place / "resnet18.pt", 16)
    zipped(place)
    wrong = f"resnet::Python=file://{here}/resnet18.zip"
    with djl_serving(here / "wrong", "-m", wrong, command=[command], status=1, listens=False) as failed:
        failed.wait()
        said = " ".join(failed.said().split())
    assert "resnet18.pt, a model for the engine PyTorch" in said
    assert "::PyTorch=" in said
    ones = np.ones((1, 3, 224, 224), np.float32)
    (here / "ones_1_3_224_224.ndlist").write_bytes(ndlist.encode([ones]))
    with serving(command, here, f"resnet::PyTorch=file://{here}/resnet18") as server:
        line = (
            'curl -X POST "http://127.0.0.1:8080/predictions/resnet" -T "ones_1_3_224_224.ndlist" '
            '-H "Content-type: tensor/ndlist" -o "out.ndlist"'
        )
        typed(server, here, line)
        (found,) = ndlist.decode((here / "out.ndlist").read_bytes())
        np.testing.assert_allclose(found, np.ones((1, 16)))
        outfile = io.BytesIO()
        np.savez(outfile, ones)
        outfile.seek(0)
        names: dict[str, Any] = {"urllib3": urllib3, "outfile": outfile}
        exec(NPZ_CLIENT.replace(":8080/", f":{server.port}/"), names)
        response = names["response"]
        assert (response.status, response.headers["Content-Type"]) == (200, "tensor/npz")
        np.testing.assert_allclose(np.load(io.BytesIO(response.data))["arr_0"], np.ones((1, 16)))


def documents(server: DjlServing, path: str, bodies: Sequence[bytes]) -> list[int]:
    return [server.infer("POST", path, body).status for body in bodies]


def test_a_translator_that_is_broken_hurts_its_model_alone(command: str, here: Path) -> None:
    """One raises at every request, one ends its process: neighbours answer, and nothing hangs."""
    for name, line in (("raises", "raise ValueError('no')"), ("exits", "import os; os._exit(3)")):
        code = PORT.replace("return [to_tensor", f"{line}\n        return [to_tensor")
        place = lay_out(here, name, translator_py=code)
        resnet(place / f"{name}.pt", len(CLASSES))
        (place / "synset.txt").write_text("\n".join(CLASSES))
    good = lay_out(here, "good", translator_py=PORT, synset_txt="\n".join(CLASSES))
    resnet(good / "good.pt", len(CLASSES))
    picture = (here / "kitten.jpg").read_bytes()
    urls = [f"{name}::PyTorch=file://{here}/{name}" for name in ("raises", "exits", "good")]
    words = [word for url in urls for word in ("-m", url)]
    with djl_serving(here / "log", *words, command=[command]) as server:
        assert documents(server, "/predictions/raises", [picture] * 3) == [400] * 3
        assert set(documents(server, "/predictions/exits", [picture] * 3)) == {503}
        assert documents(server, "/predictions/good", [picture] * 3) == [200] * 3
