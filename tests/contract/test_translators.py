"""What every kind of translator owes: a light descriptor, a check, answers that a bare session and its parts give."""

import asyncio
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from tests.harness import translation
from tests.models import folders

from trivium.catalogue import TRANSLATORS, serving
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import TranslatorKind
from trivium.types.payload import Raw
from trivium.types.spec import Isolation

TEXT = {"inputs": ["anna lives in new york .", "acme corp"]}
BODIES = {
    "questions": {"question": "What is the weather like?", "context": "the weather is nice ."},
    "cross_encoder": [{"text": "anna lives", "text_pair": "new york"}, {"key": "acme", "value": "corp"}],
    "fill_mask": {"inputs": "anna works for [MASK]"},
    "entailment": {"text": "anna plays music", "candidate_labels": ["music", "sport"]},
}
"""A body for each folder of texts that does not take `TEXT`."""


def picture(size, shade):
    data = io.BytesIO()
    image = Image.fromarray(np.linspace(0, shade, size[0] * size[1] * 3).astype("u1").reshape(*size, 3))
    image.save(data, "PNG")
    return data.getvalue()


def test_importing_them_imports_no_heavy_library():
    script = "import sys, trivium.app; print(*sorted({'PIL', 'tokenizers', 'torch', 'onnxruntime'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []


@pytest.mark.parametrize("name", sorted(TRANSLATORS))
def test_descriptors(name):
    kind: TranslatorKind = TRANSLATORS[name]
    assert kind.name == name
    assert set(kind.isolation) <= set(Isolation)
    assert kind.isolation


def answers(folder, *bodies):
    """What a server makes of these: (body, content type) each, all sent at once; errors as they are."""

    async def scene():
        async with serving(folder) as server:
            runs = (server.run(folder.name, data, kind) for data, kind in bodies)
            found = await asyncio.gather(*runs, return_exceptions=True)
            return [_answer(one) for one in found]

    return asyncio.run(scene())


def _answer(found):
    if isinstance(found, Raw):
        (part,) = found.parts
        assert part.content_type == "application/json", part
        return json.loads(bytes(part.data))
    return found


def close(found, expected):
    """The same labels in the same order, numbers within 1e-5."""
    if isinstance(expected, float):
        return found == pytest.approx(expected, abs=1e-5)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(close, found, expected))
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(close(found[key], expected[key]) for key in expected)
    return found == expected


@pytest.mark.parametrize("name", sorted(folders.EACH))
def test_a_server_gives_the_answers_of_its_parts(name, tmp_path):
    folder = folders.EACH[name](tmp_path / name)
    if ".cv." in (folder / "serving.properties").read_text():
        sizes = [(8, 8), (8, 8)] if name.startswith("digits") else [(64, 64), (40, 80)]
        pictures = [picture(size, shade) for size, shade in zip(sizes, (255, 128), strict=True)]
        found = answers(folder, *((data, "image/png") for data in pictures), (b"no picture", "image/png"))
        expected = [one for data in pictures for one in translation.picture_answers(folder, [data])]
    else:
        body = BODIES.get(name.partition("_on")[0], TEXT)
        body = [body] if name.startswith("questions") else body  # one alone is answered by its bare text
        sent = json.dumps(body).encode(), "application/json"
        found = answers(folder, sent, sent, (b"{", "application/json"))
        expected = translation.text_answers(folder, [body, body])
    fault = found.pop()
    assert isinstance(fault, ServeError)
    assert (fault.code, fault.reason) == (Code.INVALID, "translation"), fault
    assert close(found, expected), (found, expected)
