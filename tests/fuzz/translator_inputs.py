"""What translators read: pictures and texts of clients, and the files of model folders that they are made from."""

import io
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image
from tests.fuzz import mutations
from tests.fuzz.target import Change, Target
from tests.models.folders import WORDS
from tests.models.places import QUESTIONS

from trivium.translators import arguments
from trivium.translators.arguments import LabelSource, PictureArguments, ShortEdge, TextArguments
from trivium.translators.pictures.labels import read_labels
from trivium.translators.pictures.pipeline import PicturePipeline
from trivium.translators.pictures.requests import picture_source
from trivium.translators.texts import requests
from trivium.translators.texts.encoding import TextEncoder
from trivium.translators.texts.pretrained import read_entailment, read_pretrained_labels
from trivium_worker.pictures import FORMATS

# -- pictures ----------------------------------------------------------------------------------------------

MODES = ("1", "L", "P", "RGB", "RGBA", "CMYK", "LA", "I;16", "I", "F")
STEPS = (
    PictureArguments(resize=(8, 8, "BILINEAR")),
    PictureArguments(resize_short=ShortEdge(8, 16), center_crop=True, width=8, height=8),
    PictureArguments(pad=9.0, resize=(8, 8, "AREA"), flag="GRAYSCALE"),
    PictureArguments(resize=(9, 7, "NEAREST"), center_fit=True, width=8, height=8, to_tensor=False),
)
PICTURE_TOKENS = (
    *(
        b"IHDR",
        b"IDAT",
        b"PLTE",
        b"tRNS",
        b"iCCP",
        b"zTXt",
        b"eXIf",
        b"acTL",
        b"\xff\xc0",
        b"\xff\xc2",
        b"\xff\xda",
    ),
    *(
        b"\xff\xe1\0\x10Exif\0\0",
        b"II*\0",
        b"MM\0*",
        b"VP8 ",
        b"VP8X",
        b"ALPH",
        b"ANIM",
        b"\x21\xf9\4",
        b"P6\n",
        b"P1\n",
    ),
    *(b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\x1f\x40", b"65535 ", b"8000 8000 "),
)


def pictures() -> Iterator[bytes]:
    """A picture of every format and mode that go together."""
    levels = np.random.default_rng(24).integers(0, 256, (9, 11, 3), np.uint8)
    for mode in MODES:
        for form in FORMATS:
            buffer = io.BytesIO()
            try:
                picture = (
                    Image.fromarray(levels).convert("L" if mode.startswith("I") else "RGB").convert(mode)
                )
                picture.save(buffer, form, progressive=True)
            except (OSError, ValueError, KeyError):
                continue
            yield buffer.getvalue()


def read_picture(data: bytes, chance: random.Random) -> None:
    array = PicturePipeline(chance.choice(STEPS), 2**12).arrays(data)
    assert array.ndim == 3
    assert array.size <= 3 * 16 * 16


# -- requests ----------------------------------------------------------------------------------------------

DOCUMENTS: tuple[object, ...] = (
    {"inputs": ["a", "b"]},
    "a",
    ["a", "b"],
    {"question": "q", "context": "c"},
    [{"question": "q", "paragraph": "p"}],
    {"text": "a", "text_pair": "b"},
    {"query": "a", "texts": ["b", "c"]},
    {"text": "t", "candidate_labels": ["a", "b"], "multi_label": True, "hypothesis_template": "a {}."},
    {"image_url": "data:image/png;base64,AAAA"},
    {"image_url": "https://there/a.png"},
)
REQUESTS = tuple(json.dumps(document).encode() for document in DOCUMENTS)
REQUEST_TOKENS = (
    *(
        b'"inputs"',
        b'"question"',
        b'"context"',
        b'"text"',
        b'"texts"',
        b'"candidate_labels"',
        b'"image_url"',
        b"null",
    ),
    *(b'"\\ud800"', b"\xff", b"data:image/x;base64,", b"file:///etc/passwd", b"{}", *mutations.JSON_VALUES),
)


def rebuilt_json(entry: bytes, change: Change, chance: random.Random) -> bytes:
    return mutations.json_changed(entry, chance)


def read_request(data: bytes, chance: random.Random) -> None:
    kind = chance.choice(("application/json", "application/json; charset=x", "text/plain", ""))
    fields = chance.choice(({}, {"question": "q", "context": "c"}, {"key": "a", "value": "b"}))
    which = chance.randrange(5)
    if which == 0:
        found = picture_source(data, kind)
        assert isinstance(found, bytes) or found.lower().startswith(("http://", "https://"))
        return
    rows = (
        requests.parse_texts(data, kind),
        requests.parse_questions(data, kind, fields),
        requests.parse_pairs(data, kind, fields),
        requests.parse_candidates(data),
    )[which - 1].rows
    assert rows
    vocabulary().encode(rows[:50])


@cache
def vocabulary() -> TextEncoder:
    """An encoder that cuts texts off at 64 tokens."""
    (folder() / "vocab.txt").write_text("\n".join(WORDS))
    return TextEncoder(folder(), arguments.read_text({"maxLength": 64}, "")[0])


# -- files of a model --------------------------------------------------------------------------------------

CONFIGS = tuple(
    json.dumps(document).encode()
    for document in (
        {"id2label": {"0": "a", "1": "b"}, "problem_type": "multi_label_classification"},
        {"label2id": {"entailment": 0, "contradiction": 2}, "model_type": "bert", "type_vocab_size": 2},
    )
)
TOKENIZER_TOKENS = (
    *(
        b'"WordPiece"',
        b'"BPE"',
        b'"Unigram"',
        b'"type"',
        b'"vocab"',
        b'"pad_to_multiple_of"',
        b'"max_length"',
    ),
    *(b'"Regex"', b'"(a*)*b"', b'"[PAD]"', b'"strategy":{"Fixed":99}', *mutations.JSON_VALUES),
)


@cache
def folder() -> Path:
    """A folder of this process's own."""
    return Path(tempfile.mkdtemp(prefix="translator-fuzz-"))


def file_of(name: str, data: bytes) -> Path:
    place = folder() / name.partition(".")[0]
    place.mkdir(exist_ok=True)
    (place / name).write_bytes(data)
    return place


def read_label_file(data: bytes, chance: random.Random) -> None:
    assert read_labels(LabelSource(), file_of("synset.txt", data))


def read_config_file(data: bytes, chance: random.Random) -> None:
    chance.choice((read_pretrained_labels, read_entailment))(file_of("config.json", data))


def reading_tokenizer(name: str) -> Callable[[bytes, random.Random], None]:
    def read(data: bytes, chance: random.Random) -> None:
        encoder = TextEncoder(file_of(name, data), TextArguments(include_token_types=True))
        found = encoder.encode([("how is the weather", "it is nice"), ("a", "b")])
        assert {array.shape for array in found.arrays.values()} == {found.arrays["input_ids"].shape}
        encoder.tokenizer.decode(found.encodings[0].ids)

    return read


TARGETS = (
    Target("pictures", tuple(pictures()), read_picture, tokens=PICTURE_TOKENS),
    Target("translator_requests", REQUESTS, read_request, tokens=REQUEST_TOKENS, rebuild=rebuilt_json),
    Target("labels", (b"cat\ndog\n", "\ufeffn02 d\u00e9j\u00e0 vu\r\n\r\n".encode()), read_label_file),
    Target("label_configs", CONFIGS, read_config_file, rebuild=rebuilt_json, tokens=TOKENIZER_TOKENS),
    Target(
        "tokenizers",
        ((QUESTIONS / "tokenizer.json").read_bytes(),),
        reading_tokenizer("tokenizer.json"),
        rebuild=rebuilt_json,
        tokens=TOKENIZER_TOKENS,
    ),
    Target(
        "vocabularies", ("\n".join(WORDS).encode(),), reading_tokenizer("vocab.txt"), tokens=(b"[PAD]", b"##")
    ),
)
