"""The shipped client: its tensors, its two requests as our own protocol reads them, and its sentences."""

import ast
import io
import json
import sys
from email.message import Message
from http.client import RemoteDisconnected
from pathlib import Path
from urllib.error import HTTPError, URLError

import numpy as np
import pytest
from examples.digits.split import held_out_part, training_part
from PIL import Image

from trivium.demo import classify, places
from trivium.types.operations import Infer, ResponsePart, WantedOutput
from trivium.types.payload import Tensors
from trivium.types.wire import Body, Head
from trivium.wires.v2.http import KServeHttp

SEVEN = places.pictures()[7]
SHARES = np.array([[0.0, 0, 0, 0, 0, 0, 0, 0.998, 0.002, 0]], "<f4")


class Answer(io.BytesIO):
    """What urlopen returns: a body with headers."""

    def __init__(self, body: bytes, length: str | None) -> None:
        super().__init__(body)
        self.headers = Message()
        if length is not None:
            self.headers["Inference-Header-Content-Length"] = length


def served(path: str, body: bytes, headers: dict[bytes, bytes]) -> tuple[Infer, bytes, str]:
    """What our own protocol reads in a request, and how it answers with SHARES: body, header lines."""
    protocol = KServeHttp("trivium", "0")
    head = Head("POST", path, "", headers, len(body))
    operation, encoder = protocol.decode(head, protocol.head(head), Body(body))
    answer = encoder.encode(ResponsePart(Tensors.of({"probabilities": SHARES}), model="digits", version="1"))
    assert answer.status == 200
    return operation, b"".join(answer.buffers), answer.fields.decode()


def refused(words) -> str:
    with pytest.raises(SystemExit) as exit:
        classify.main(words)
    assert isinstance(exit.value.code, str)
    assert "\n" not in exit.value.code
    return exit.value.code


def saved(folder: Path, picture: Image.Image) -> Path:
    path = folder / "picture.png"
    picture.save(path)
    return path


# -- pictures ----------------------------------------------------------------------------------------------


def test_every_picture_of_the_data_set_comes_back_also_as_dark_ink_on_light_paper(tmp_path) -> None:
    for part in (training_part(), held_out_part()):
        for levels, tensor in list(zip(part.pictures, part.tensor, strict=True))[::9]:
            path = saved(tmp_path, Image.fromarray(levels))
            assert (classify.to_tensor(path)[0] == tensor).all()
            path = saved(tmp_path, Image.fromarray(255 - levels))
            np.testing.assert_allclose(classify.to_tensor(path)[0], tensor, atol=1e-6)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
@pytest.mark.parametrize("size", [(8, 8), (40, 90), (3, 5)])
def test_any_kind_and_size_becomes_one_tensor(mode, size, tmp_path) -> None:
    path = tmp_path / "picture.tiff"
    Image.new(mode, size).save(path)
    tensor = classify.to_tensor(path)
    assert (tensor.shape, tensor.dtype) == ((1, 1, 8, 8), np.float32)
    assert ((tensor >= 0) & (tensor <= 1)).all()


def test_ink_on_a_transparent_ground_is_ink_on_paper(tmp_path) -> None:
    picture = Image.new("RGBA", (8, 8), (0, 0, 0, 0))
    picture.putpixel((2, 5), (0, 0, 0, 255))
    tensor = classify.to_tensor(saved(tmp_path, picture))
    assert np.argwhere(tensor).tolist() == [[0, 0, 5, 2]]
    assert tensor[0, 0, 5, 2] == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no such file"),
        (b"", "cannot identify"),
        (b"seven", "cannot identify"),
        (SEVEN.read_bytes()[:60], "not a picture"),
    ],
    ids=["missing", "empty", "text", "cut short"],
)
def test_what_is_no_picture_is_named(content, says, tmp_path) -> None:
    path = tmp_path / "seven.png"
    if content is not None:
        path.write_bytes(content)
    line = refused([str(path)])
    assert line.startswith(f"{path}: ")
    assert says in line


def test_a_folder_and_a_16_bit_picture_are_refused(tmp_path) -> None:
    assert "not a picture" in refused([str(tmp_path)])
    deep = Image.fromarray(np.full((8, 8), 300, np.uint16))
    assert "more than 8 bits" in refused([str(saved(tmp_path, deep))])


# -- requests ----------------------------------------------------------------------------------------------


def test_our_protocol_reads_the_request_and_the_client_its_answer(monkeypatch) -> None:
    operations = []

    def urlopen(request, timeout):
        assert (request.host, request.get_method()) == ("there:1", "POST")
        headers = {name.lower().encode(): value.encode() for name, value in request.header_items()}
        operation, body, fields = served(request.selector, request.data, headers)
        operations.append(operation)
        return Answer(body, fields.partition("Inference-Header-Content-Length: ")[2].strip())

    monkeypatch.setattr(classify, "urlopen", urlopen)
    tensor = classify.to_tensor(SEVEN)
    assert (classify.probabilities("http://there:1/", "a/b", tensor) == SHARES).all()
    (operation,) = operations
    assert operation.model == "a/b"
    assert (operation.payload["image"] == tensor).all()
    assert operation.outputs == (WantedOutput("probabilities"),)


def test_json_prints_one_body_with_all_pictures(capsys) -> None:
    classify.main(["--json", *map(str, places.pictures())])
    body = capsys.readouterr().out.encode()
    operation, answer, _ = served("/v2/models/digits/infer", body, {})
    wanted = np.concatenate([classify.to_tensor(path) for path in places.pictures()])
    assert (operation.payload["image"] == wanted).all()
    assert json.loads(answer)["outputs"][0]["data"] == pytest.approx(SHARES.ravel().tolist())


def test_json_with_an_address_is_refused(capsys) -> None:
    with pytest.raises(SystemExit):
        classify.main(["--json", "--url", "http://there", str(SEVEN)])
    assert "--json sends nothing" in capsys.readouterr().err


def test_one_request_and_one_line_per_picture(monkeypatch, capsys) -> None:
    requests = []

    def urlopen(request, timeout):
        requests.append(request.full_url)
        return Answer(SHARES.tobytes(), "0")

    monkeypatch.setattr(classify, "urlopen", urlopen)
    classify.main([str(SEVEN), str(places.pictures()[1]), "--model", "digits-bare"])
    assert capsys.readouterr().out == "digit-7.png: 7 (99.8 %)\ndigit-1.png: 7 (99.8 %)\n"
    assert requests == ["http://127.0.0.1:8080/v2/models/digits-bare/infer"] * 2


# -- what goes wrong ---------------------------------------------------------------------------------------


def http_error(body: bytes) -> HTTPError:
    return HTTPError("http://there", 404, "Not Found", Message(), io.BytesIO(body))


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (URLError(ConnectionRefusedError(111, "refused")), "nobody answers at http://there"),
        (TimeoutError("timed out"), "timed out"),
        (RemoteDisconnected("hung up"), "hung up"),
        (http_error(b'{"error": "no model 7"}'), "404: no model 7"),
        (http_error(b"<html>"), "404: Not Found"),
        (http_error(b"[]"), "404: Not Found"),
        (Answer(b"{}", None), "something else"),
        (Answer(b"{}", "2"), "something else"),
        (Answer(b"{}", "9"), "something else"),
        (Answer(b"{}" + SHARES.tobytes() * 2, "2"), "something else"),
        (Answer(b"<html>", "x"), "something else"),
    ],
)
def test_each_failure_is_one_line(outcome, says, monkeypatch) -> None:
    def urlopen(request, timeout):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(classify, "urlopen", urlopen)
    assert says in refused(["--url", "http://there", str(SEVEN)])


def test_an_address_without_a_scheme_is_refused() -> None:
    assert "nobody answers at there" in refused(["--url", "there", str(SEVEN)])


def test_it_can_be_copied() -> None:
    tree = ast.parse(Path(classify.__file__).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    tops = {name.partition(".")[0] for name in names}
    assert tops - sys.stdlib_module_names == {"numpy", "PIL"}
