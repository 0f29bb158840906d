"""Hostile input for translators of a server that runs: clear refusals, neighbours answered, nothing left behind."""

import base64
import contextlib
import io
import json
import os
import random
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import psutil
import pytest
from PIL import Image
from tests.harness.commands import trivium
from tests.harness.djl_serving import DjlServing, djl_serving
from tests.harness.server_process import until
from tests.models import folders

SEED = 20261125
LEFT_BY_ONNX_RUNTIME = ".ses"
FORMS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
MODES = ("1", "L", "P", "RGB", "RGBA", "CMYK", "YCbCr", "LA", "PA", "RGBX", "I", "F", "LAB", "I;16")
JSON = "Content-Type: application/json\r\n"
SERVED = ("segmentation", "digits_onnx", "sentences", "fill_mask")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, scratch: Path) -> Iterator[DjlServing]:
    """Two models of pictures with a worker each, and two of texts, one of which has read a long one."""
    root = tmp_path_factory.mktemp("hostile")
    for name in SERVED:
        place = root / "store" / name
        maker = folders.EACH[name]
        folders.sentences(place, "OnnxRuntime") if name == "sentences" else maker(place)
        with (place / "serving.properties").open("a") as file:
            file.write("minWorkers=1\nmaxWorkers=1\n")
    with djl_serving(root / "log", "-s", root / "store", variables={"TMPDIR": str(scratch)}) as running:
        assert serves(running)
        assert (
            running.infer("POST", "/predictions/sentences", b"a " * 2**18).status == 200
        )  # has its process then
        yield running
    assert {file.name for file in scratch.iterdir()} <= {LEFT_BY_ONNX_RUNTIME}


def saved(image: Image.Image, form: str = "PNG") -> bytes:
    made = io.BytesIO()
    image.save(made, form)
    return made.getvalue()


GOOD = saved(Image.new("RGB", (9, 9), (255, 0, 0)))


def serves(server: DjlServing) -> bool:
    """Both pictures and texts are answered."""
    picture = server.infer("POST", "/predictions/segmentation", GOOD)
    text = server.infer("POST", "/predictions/fill_mask", b"anna works for [MASK]")
    return (picture.status, text.status) == (200, 200)


def refused(server: DjlServing, model: str, body: bytes, fields: str = "") -> bool:
    """Ask; the answer is 200, or a refusal as a translator's."""
    answer = server.infer("POST", f"/predictions/{model}", body, fields)
    if answer.status == 200:
        return False
    assert (answer.status, answer.document["type"]) == (400, "TranslateException"), (answer, body[:40])
    assert answer.document["message"]
    return True


def processes(server: DjlServing) -> dict[int, int]:
    """The processes of a server, with how many files each has open; but for probes, which end once nobody asks."""
    of = psutil.Process(server.process.pid)
    found = {}
    for one in [of, *of.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError):
            if not any("trivium.cli.probe" in word for word in one.cmdline()):
                found[one.pid] = len(os.listdir(f"/proc/{one.pid}/fd"))
    return found


@pytest.fixture
def unharmed(server: DjlServing) -> Iterator[None]:
    """Whatever is sent, no process ends, and none keeps a file open."""
    before = processes(server)
    yield
    assert serves(server)
    until(
        lambda: processes(server).keys() == before.keys(), server.said
    )  # a probe that leaves has no name any more
    until(lambda: all(count <= before[pid] + 2 for pid, count in processes(server).items()), server.said)


def pictures() -> Iterator[tuple[str, bytes]]:
    """Yield a picture of each mode in each form that has it."""
    for mode in MODES:
        for form in FORMS:
            try:
                yield f"{mode} as {form}", saved(Image.new(mode, (7, 5)), form)
            except (OSError, ValueError, KeyError):
                continue


def lies() -> Iterator[tuple[str, bytes]]:
    """Yield pictures that say they are larger than they are, and some that are far larger than their bytes."""
    bitmap = saved(Image.new("L", (8, 8)), "BMP")
    for side in (10_000, 20_000, 2**31 - 1):
        yield f"a head of {side}", bitmap[:18] + side.to_bytes(4, "little") * 2 + bitmap[26:]
    head = b"\x89PNG\r\n\x1a\n"
    for width, height in ((8001, 8000), (65_536, 1), (2**31 - 1, 2**31 - 1), (0, 0)):
        size = struct.pack(">II5B", width, height, 8, 0, 0, 0, 0)
        parts = (b"IHDR", size), (b"IDAT", zlib.compress(bytes(100))), (b"IEND", b"")
        chunks = (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
            for kind, data in parts
        )
        yield f"a PNG of {width} x {height}", head + b"".join(chunks)
    yield "a bomb", saved(Image.new("1", (9000, 9000)))
    data = zlib.compress(bytes(4096 * 4096))
    tags = {256: 16, 257: 16, 258: 8, 259: 8, 262: 1, 277: 1, 322: 4096, 323: 4096, 324: 134, 325: len(data)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    yield "a tile", b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + entries + bytes(4) + data
    starts = (("PostScript", b"%!PS-Adobe-3.0 EPSF-3.0\n"), ("a GIF's head", b"GIF89a"), ("SVG", b"<svg/>"))
    yield from starts


@pytest.mark.usefixtures("unharmed")
def test_a_picture_of_any_mode_is_answered_or_refused(server: DjlServing) -> None:
    found = {note: refused(server, "segmentation", data) for note, data in pictures()}
    assert len(found) > 40
    assert all(note.startswith(("F ", "LAB ")) for note, is_refused in found.items() if is_refused), found


@pytest.mark.usefixtures("unharmed")
def test_a_picture_that_lies_about_its_size_is_refused_as_a_body_and_as_a_url(server: DjlServing) -> None:
    for note, data in lies():
        assert refused(server, "segmentation", data), note
        url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
        assert refused(server, "digits_onnx", json.dumps({"image_url": url}).encode(), JSON), note


@pytest.mark.usefixtures("unharmed")
def test_a_picture_that_is_cut_off_or_damaged_is_answered_or_refused(server: DjlServing) -> None:
    chance = random.Random(SEED)
    whole = Image.effect_noise((40, 30), 90)
    for form in FORMS:
        data = saved(whole, form)
        for _ in range(12):
            broken = bytearray(data[: chance.randrange(1, len(data))])
            for _ in range(chance.randrange(4)):
                broken[chance.randrange(len(broken))] = chance.randrange(256)
            refused(server, chance.choice(SERVED[:2]), bytes(broken))


@pytest.mark.usefixtures("unharmed")
def test_texts_that_are_none_or_too_much_are_refused(server: DjlServing) -> None:
    for body in (
        b"",
        b"\xff",
        b"[" * 100_000,
        b'{"inputs": "' + b"a" * (5 * 2**20) + b'"}',
        b'{"inputs": "\\ud800"}',
        b'{"inputs": {}}',
        b'{"inputs": [[[]]]}',
        b"null",
    ):
        assert refused(server, "sentences", body, JSON), body[:40]
        assert refused(server, "fill_mask", body, JSON), body[:40]
    for body in (b"a" * 2**20, b"\0" * 100, "\u202e\U0001f600".encode() * 1000, b'"' + b"a " * 2**18 + b'"'):
        assert not refused(server, "sentences", body)


# -- folders -----------------------------------------------------------------------------------------------


def _with(file: str, data: bytes | None) -> Callable[[Path], None]:
    def change(place: Path) -> None:
        (place / file).unlink()
        if data is not None:
            (place / file).write_bytes(data)

    return change


BROKEN = {
    "few_labels": ("digits_onnx", "synset.txt", b"one\ntwo\n"),
    "no_labels": ("digits_onnx", "synset.txt", None),
    "empty_labels": ("digits_onnx", "synset.txt", b""),
    "bytes_as_labels": ("segmentation", "synset.txt", b"\xff\xfe\n\0"),
    "many_labels": ("segmentation", "synset.txt", b"a\n" * 5000),
    "empty_words": ("fill_mask", "vocab.txt", b""),
    "words_twice": ("fill_mask", "vocab.txt", b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\na\n"),
    "bytes_as_words": ("fill_mask", "vocab.txt", b"\xff"),
    "no_words": ("fill_mask", "vocab.txt", None),
    "no_tokenizer": ("sentences", "tokenizer.json", b"{}"),
    "deep_tokenizer": ("sentences", "tokenizer.json", b"[" * 100_000),
    "cut_tokenizer": ("sentences", "tokenizer.json", b'{"version": "1.0", "model": {"type"'),
    "cut_config": ("sentences", "config.json", b"{"),
    "labels_of_nothing": ("sentences", "config.json", b'{"id2label": {"0": 1}}'),
}
"""Name -> the folder that it is made of, the file that is broken, and what stands in it; None where it is gone."""

CHECKED = ("many_labels", "bytes_as_words", "deep_tokenizer")
"""Checking a model opens it, which takes its time: a few of them are checked."""


def lay_out_broken(root: Path, names: Iterable[str] = BROKEN) -> Path:
    for name in names:
        base, file, data = BROKEN[name]
        place = root / name
        folders.sentences(place, "OnnxRuntime") if base == "sentences" else folders.EACH[base](place)
        _with(file, data)(place)
    return root


@pytest.mark.usefixtures("unharmed")
def test_a_folder_that_is_broken_is_a_load_failure_of_that_model_alone(
    server: DjlServing, tmp_path: Path
) -> None:
    store = lay_out_broken(tmp_path / "broken")
    for name, (_, file, _) in BROKEN.items():
        refusal = server.manage("POST", f"/models?url={store / name}")
        assert (refusal.status, refusal.document["type"]) == (500, "EngineException"), (name, refusal)
        assert file in refusal.document["message"], (name, refusal)
    assert serves(server)
    listed = server.manage("GET", "/models").document["models"]
    assert sorted(row["modelName"] for row in listed) == sorted(SERVED)


def test_check_names_the_file_of_each_broken_folder(tmp_path: Path) -> None:
    store = lay_out_broken(tmp_path / "broken", CHECKED)
    done = trivium("check", store)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout
    sections = done.stdout.split("model ")
    for name in CHECKED:
        file = BROKEN[name][1]
        told = [section for section in sections if section.startswith(f"{name} ")]
        assert any(file in section for section in told), (name, done.stdout)
