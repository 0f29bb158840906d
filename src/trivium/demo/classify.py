"""Asks a v2 server which digit a picture shows: python -m trivium.demo.classify PICTURE...

Made to be copied: it needs numpy and Pillow (pip install numpy pillow) and nothing else of Trivium. The
model wants light ink on dark paper, 8 x 8 pixels from 0 to 1; making that of a picture is the client's part.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import numpy as np
import numpy.typing as npt
from PIL import Image

Tensor = npt.NDArray[np.float32]

_URL = "http://127.0.0.1:8080"
_MODEL = "digits"
_TIMEOUT = 30.0  # seconds
_HEADER_LENGTH = "Inference-Header-Content-Length"


class ClassifyError(Exception):
    """An error in one line for the person who asked."""


def to_tensor(path: Path) -> Tensor:
    """The picture as [1, 1, 8, 8], 0 (paper) to 1 (ink); ClassifyError if there is none to read.

    Stretched to 8 x 8, each pixel the mean of what it covers. Where most of it is light, it is dark ink on
    light paper, and is inverted.
    """
    try:
        with Image.open(path) as picture:
            grey = _grey(picture).resize((8, 8), Image.Resampling.BOX)
    except FileNotFoundError as error:
        raise ClassifyError(f"{path}: no such file") from error
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ClassifyError(f"{path}: not a picture that can be read ({error})") from error
    levels: Tensor = np.asarray(grey, np.float32) / 255
    ink = 1 - levels if np.median(levels) > 0.5 else levels
    return ink.reshape(1, 1, 8, 8)


def probabilities(url: str, model: str, tensor: Tensor) -> Tensor:
    """[N, 10] for [N, 1, 8, 8], by one request; ClassifyError with what the server says, or that none does."""
    try:
        with urlopen(binary_request(url, model, tensor), timeout=_TIMEOUT) as answer:
            length, body = answer.headers[_HEADER_LENGTH], answer.read()
    except HTTPError as error:
        raise ClassifyError(f"{url} refuses with {error.code}: {_said(error)}") from error
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise ClassifyError(f"nobody answers at {url} ({reason}); start a server: trivium demo") from error
    try:
        scores: Tensor = np.frombuffer(body, "<f4", offset=int(length)).reshape(len(tensor), 10)
    except (TypeError, ValueError) as error:
        raise ClassifyError(f"{url} answers with something else than {len(tensor)} x 10 numbers") from error
    return scores


def binary_request(url: str, model: str, tensor: Tensor) -> Request:
    """Open Inference Protocol v2 with the binary tensor data extension: JSON, and raw data behind it."""
    data = tensor.astype("<f4").tobytes()
    header = json.dumps(
        {
            "inputs": [_input(tensor) | {"parameters": {"binary_data_size": len(data)}}],
            "outputs": [{"name": "probabilities", "parameters": {"binary_data": True}}],
        }
    ).encode()
    return Request(
        f"{url.rstrip('/')}/v2/models/{quote(model, safe='')}/infer",
        header + data,
        {"Content-Type": "application/octet-stream", _HEADER_LENGTH: str(len(header))},
    )


def json_body(tensor: Tensor) -> str:
    """Return the same request in JSON alone, to be sent by hand."""
    numbers = [float(str(number)) for number in tensor.ravel()]  # str: as few digits as give back FP32
    return json.dumps(
        {"inputs": [_input(tensor) | {"data": numbers}], "outputs": [{"name": "probabilities"}]}
    )


def main(words: Sequence[str] | None = None) -> None:
    """The command; leaves with status 1 and one line where something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m trivium.demo.classify", description="Which digit is it?")
    parser.add_argument("pictures", nargs="+", type=Path, metavar="PICTURE", help="PNG, JPEG, ...")
    parser.add_argument("--url", help=f"of a v2 server; {_URL} if not given")
    parser.add_argument("--model", help=f"{_MODEL} if not given")
    parser.add_argument(
        "--json", action="store_true", help="send nothing; print one body for all pictures, for: curl -d @-"
    )
    options = parser.parse_args(words)
    if options.json and (options.url or options.model):
        parser.error("--json sends nothing; leave out --url and --model")
    lines = _bodies if options.json else partial(_verdicts, options.url or _URL, options.model or _MODEL)
    try:
        for line in lines(options.pictures):
            print(line)  # noqa: T201
    except ClassifyError as error:
        sys.exit(str(error))


def _bodies(pictures: Sequence[Path]) -> Iterator[str]:
    yield json_body(np.concatenate([to_tensor(path) for path in pictures]))


def _verdicts(url: str, model: str, pictures: Sequence[Path]) -> Iterator[str]:
    for path in pictures:
        (shares,) = probabilities(url, model, to_tensor(path))
        yield f"{path.name}: {shares.argmax()} ({100 * shares.max():.1f} %)"


def _grey(picture: Image.Image) -> Image.Image:
    """Return the picture with 8 bits a pixel; what is transparent shows white paper."""
    if picture.mode.startswith(("I", "F")):  # Pillow would cut their levels off, not scale them
        raise ValueError("it has more than 8 bits per pixel; save it with 8")
    if picture.has_transparency_data:
        drawn = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", drawn.size, "white"), drawn)
    return picture.convert("L")


def _input(tensor: Tensor) -> dict[str, object]:
    return {"name": "image", "datatype": "FP32", "shape": list(tensor.shape)}


def _said(error: HTTPError) -> str:
    """The message of a v2 error, or the status line's words."""
    try:
        return str(json.loads(error.read())["error"])
    except (OSError, ValueError, TypeError, KeyError):
        return error.reason


if __name__ == "__main__":
    main()
