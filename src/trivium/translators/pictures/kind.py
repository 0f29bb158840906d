"""Kinds of translators of pictures: the arguments of each, what it makes of outputs, and its faults at load.

A picture is the body, the field `data` of a form, or what `image_url` names in JSON. They run in worker processes:
decoding takes processor time under the interpreter's lock. Source: spec sheet `djl`, section 10.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trivium.translators.answers import json_answer
from trivium.translators.arguments import PictureArguments
from trivium.translators.checking import fault_at, findings_of, input_name, translator_of
from trivium.translators.faults import refused, unfit
from trivium.translators.pictures.labels import read_labels
from trivium.translators.pictures.pipeline import PicturePipeline, PreparedPicture, require_pillow
from trivium.translators.pictures.requests import picture_source
from trivium.translators.reading import ArgumentFinding
from trivium.translators.requests import body_of, content_type_of, data_of
from trivium.types.datatype import Array, DataType
from trivium.types.errors import ServeError, frameless
from trivium.types.fetching import FetchFile
from trivium.types.findings import Finding
from trivium.types.operations import Infer
from trivium.types.payload import Raw, Tensors
from trivium.types.running import Translated
from trivium.types.spec import Isolation, ModelSpec

_CHANNELS = {"COLOR": 3, "GRAYSCALE": 1}


class PictureAnswers(Protocol):
    """Makes the answer of one picture."""

    pipeline: PicturePipeline

    def fault(self, shapes: Mapping[str, Sequence[int]]) -> str:
        """Return what is wrong with outputs of these shapes; empty for nothing."""

    def answer(self, outputs: Mapping[str, Array], picture: PreparedPicture) -> object:
        """Return what becomes the JSON."""


@dataclass(frozen=True, slots=True)
class PictureTask:
    """One kind: `read` makes its arguments and findings, and `make` what answers, of those and of the labels."""

    name: str
    read: Callable[[Mapping[str, object]], tuple[Any, list[ArgumentFinding]]]
    make: Callable[[Any, Sequence[str]], PictureAnswers]


class PictureKind:
    """A descriptor. Implements `TranslatorKind`; `fetch` gets what a URL names."""

    isolation: tuple[Isolation, ...] = (Isolation.PROCESS,)
    example = ""

    def __init__(self, task: PictureTask, fetch: FetchFile) -> None:
        self.name = task.name
        self._task = task
        self._fetch = fetch

    def check(self, spec: ModelSpec) -> Sequence[Finding]:
        """See `SupportsCheck`: the arguments, the model's only input, and the labels against the outputs."""
        wanted = translator_of(spec)
        arguments, found = self._task.read(wanted.arguments)
        findings = findings_of(spec, found)
        findings += self._inputs(spec, _picture(arguments))
        try:
            made = self._task.make(arguments, self._read_labels(spec, arguments))
        except ServeError as error:
            return [*findings, fault_at(spec, "", error.message, "", "")]
        shapes = {one.name: one.dims for one in spec.outputs}
        if shapes and (fault := made.fault(shapes)):
            findings.append(fault_at(spec, "synset", fault, "", "Correct the file, or the model."))
        return findings

    def open(self, spec: ModelSpec) -> "PictureTranslator":
        """See `TranslatorKind`. Reads the labels."""
        require_pillow()
        arguments, _ = self._task.read(translator_of(spec).arguments)
        return PictureTranslator(
            spec, self._task.make(arguments, self._read_labels(spec, arguments)), self._fetch
        )

    def _read_labels(self, spec: ModelSpec, arguments: Any) -> Sequence[str]:
        source = getattr(arguments, "labels", None)
        if source is None:
            return ()
        wanted = translator_of(spec)
        fetched = self._fetch(source.url, wanted.places, wanted.most_bytes) if source.url else None
        return read_labels(source, spec.root, fetched)

    def _inputs(self, spec: ModelSpec, picture: PictureArguments) -> list[Finding]:
        """Return what keeps the model from taking a picture. A file that does not tell its inputs is believed."""
        if not spec.inputs:
            return []
        required = [one for one in spec.inputs if not one.optional] or spec.inputs
        if len(required) > 1:
            names = ", ".join(one.name for one in required)
            return [fault_at(spec, "", f"the model takes {len(required)} inputs: {names}", "one picture", "")]
        (tensor,) = required
        if tensor.open:
            return []
        findings: list[Finding] = []
        if tensor.datatype is not DataType.FP32:
            found = f"the model takes {tensor.datatype.wire}, and pictures are FP32"
            findings.append(fault_at(spec, "", found, "FP32", "Export the model with a float input."))
        made = shape_of(picture)
        if not _fits(made, tensor.dims):
            found = f"pictures become tensors of the shape {list(made)}, where -1 is any size"
            expected, hint = (
                f"{list(tensor.dims)}",
                "Set resize, width, height, flag and toTensor as it takes them.",
            )
            findings.append(fault_at(spec, "resize", found, expected, hint))
        return findings


class PictureTranslator:
    """Makes tensors of pictures, each by itself. Implements `Translator`."""

    def __init__(self, spec: ModelSpec, answers: PictureAnswers, fetch: FetchFile) -> None:
        self._wanted = translator_of(spec)
        self._input = input_name(spec, 0)
        self._answers = answers
        self._fetch = fetch

    def before(self, requests: Sequence[Infer]) -> list[Translated | ServeError]:
        """See `Translator`."""
        return [self._before(body_of(request)) for request in requests]

    def after(self, translated: Translated, outputs: Sequence[Tensors]) -> Raw:
        """See `Translator`."""
        picture = translated.state
        assert isinstance(picture, PreparedPicture), "it was made by before"
        arrays = {one.name: one.array for one in outputs[0].items}
        try:
            return json_answer(self._answers.answer(arrays, picture))
        except ServeError as error:
            raise refused(error) from error

    def close(self) -> None:
        """There is nothing to free."""

    def _before(self, raw: Raw) -> Translated | ServeError:
        try:
            part = data_of(raw)
            source = picture_source(bytes(part.data), content_type_of(raw, part))
            data = source if isinstance(source, bytes) else self._fetched(source)
            picture = self._answers.pipeline.prepare(data)
        except ServeError as error:
            return frameless(refused(error))
        return Translated([Tensors.of({self._input: picture.array})], picture)

    def _fetched(self, url: str) -> bytes:
        try:
            return self._fetch(url, self._wanted.places, self._wanted.most_bytes)
        except ServeError as error:
            raise unfit(f"The picture at image_url cannot be had. {error.message}") from error


def _picture(arguments: Any) -> PictureArguments:
    found = arguments if isinstance(arguments, PictureArguments) else arguments.picture
    assert isinstance(found, PictureArguments), "arguments of pictures have those of the steps"
    return found


def shape_of(picture: PictureArguments) -> tuple[int, ...]:
    """Return the shape of what becomes of pictures, -1 for what depends on each."""
    width = height = -1
    if picture.center_crop or picture.center_fit:
        width, height = picture.width, picture.height
    elif picture.resize and not picture.resize_short:
        width, height, _ = picture.resize
    channels = _CHANNELS[picture.flag]
    return (channels, height, width) if picture.to_tensor else (height, width, channels)


def _fits(made: Sequence[int], dims: Sequence[int]) -> bool:
    return len(made) == len(dims) and all(-1 in (a, b) or a == b for a, b in zip(made, dims, strict=True))
