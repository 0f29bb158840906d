"""Runs translators that come with their model: a class in Python with the three methods that DJL has.

    prepare(ctx)                      once, when an instance opens; may be left out
    process_input(ctx, input)         the request -> arrays, in the order of the model's inputs or by their names
    process_output(ctx, arrays)       the model's outputs -> the answer

They run in a worker process: they are somebody's code. Source: spec sheet `djl`, section 10.
"""

import importlib
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trivium.codecs.signatures import content_type_of as signature_of
from trivium.codecs.torch_archive import extra_texts, names_of
from trivium.translators.answers import json_answer, text_answer
from trivium.translators.faults import failed, unfit
from trivium.translators.requests import body_of, data_of, fields_of, json_of, text_of
from trivium.types.datatype import Array
from trivium.types.errors import Code, ServeError, frameless, named, said_by
from trivium.types.extra_files import EXTRA_FILES
from trivium.types.findings import Finding
from trivium.types.operations import Infer
from trivium.types.payload import Payload, Raw, RawPart, Tensors
from trivium.types.running import Translated
from trivium.types.spec import Isolation, ModelSpec

if TYPE_CHECKING:
    from PIL.Image import Image

_LINES = 3
"""Lines of a traceback that an error shows."""


class TranslatorContext:
    """The model as a translator sees it, and `attachments`, which last from one request's input to its output.
    `extra_files` are texts that lie in the model's own archive, by name: those that its configuration names.
    """

    def __init__(
        self, root: Path, model: str, arguments: Mapping[str, object], extra_files: Mapping[str, str]
    ) -> None:
        self.model = model
        self.arguments = arguments
        self.extra_files = extra_files
        self.attachments: dict[str, object] = {}
        self._root = root

    def artifact(self, name: str) -> Path:
        """Return the path of a file of the model's folder. Raises FileNotFoundError, ValueError for one outside."""
        path = (self._root / name).resolve()
        if not path.is_relative_to(self._root.resolve()):
            raise ValueError(f"{name} leads out of the model's folder {self._root}; name a file of it")
        if not path.exists():
            raise FileNotFoundError(f"the model's folder {self._root} has no file {name}")
        return path

    def for_request(self) -> "TranslatorContext":
        """Return the context of one request."""
        return TranslatorContext(self._root, self.model, self.arguments, self.extra_files)


class TranslatorInput:
    """One request: what it brings under no name, or under `name` of a form. What cannot be read raises INVALID."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw
        self.properties: Mapping[str, str] = raw.properties

    @property
    def fields(self) -> Mapping[str, str]:
        """Return the fields of a form and the arguments of the query, as text."""
        return fields_of(self._raw)

    def get_as_bytes(self, name: str = "") -> bytes:
        """Return the data as it came."""
        if not name:
            return bytes(data_of(self._raw).data)
        part = next((one for one in self._raw.parts if one.name == name), None)
        if part is None:
            raise unfit(f"The request has no field {name!r}.")
        return bytes(part.data)

    def get_as_string(self, name: str = "") -> str:
        """Return the data as text, which is UTF-8."""
        return text_of(self.get_as_bytes(name))

    def get_as_json(self, name: str = "") -> Any:
        """Return the data as what its JSON holds."""
        return json_of(self.get_as_bytes(name))

    def get_as_image(self, name: str = "") -> "Image":
        """Return the data as a picture in RGB."""
        from trivium.translators.kit import open_picture

        try:
            return open_picture(self.get_as_bytes(name))
        except ValueError as error:
            raise unfit(f"The picture cannot be read: {error}.") from error


class CustomTranslator:
    """Calls the three methods of one object of user code. Implements `Translator`."""

    def __init__(self, code: Any, context: TranslatorContext, spec: ModelSpec) -> None:
        self._code = code
        self._context = context
        self._inputs = [tensor.name for tensor in spec.inputs]

    def before(self, requests: Sequence[Infer]) -> list[Translated | ServeError]:
        """Have each request processed. What user code raises is that request's error."""
        return [self._before(body_of(request)) for request in requests]

    def after(self, translated: Translated, outputs: Sequence[Tensors]) -> Payload:
        """Have the outputs processed, and make a body of what comes back."""
        arrays = [tensor.array for tensor in outputs[0].items]
        try:
            made = self._code.process_output(translated.state, arrays)
        except ServeError:
            raise
        except Exception as error:
            raise _raised("process_output", error) from error
        return _answer(made)

    def close(self) -> None:
        """Drop it."""
        self._code = None

    def _before(self, raw: Raw) -> Translated | ServeError:
        context = self._context.for_request()
        try:
            made = self._code.process_input(context, TranslatorInput(raw))
            return Translated([self._named(made)], context)
        except ServeError as error:
            return frameless(error)
        except Exception as error:
            return frameless(_raised("process_input", error))

    def _named(self, made: object) -> Tensors:
        if isinstance(made, np.ndarray):
            made = [made]
        if isinstance(made, Mapping):
            return _tensors({str(name): np.asarray(one) for name, one in made.items()})
        if not isinstance(made, list | tuple):
            raise failed(
                f"process_input returned {type(made).__name__}; expected are arrays: a list in the order of the "
                "model's inputs, or a mapping from their names."
            )
        names = self._inputs or [f"INPUT__{i}" for i in range(len(made))]
        if len(made) > len(names):
            raise failed(
                f"process_input returned {len(made)} arrays; the model has {len(names)} inputs: {', '.join(names)}."
            )
        return _tensors({name: np.asarray(one) for name, one in zip(names, made, strict=False)})


class CustomKind:
    """The descriptor. Implements `TranslatorKind`."""

    name = "custom"
    example = ""
    isolation: tuple[Isolation, ...] = (Isolation.PROCESS,)

    def check(self, spec: ModelSpec) -> Sequence[Finding]:
        """Every argument is the code's own."""
        return ()

    def open(self, spec: ModelSpec) -> CustomTranslator:
        """Import the class, make one of it, and have it prepared. Raises LOAD_FAILED for whatever goes wrong there."""
        wanted = spec.translator
        assert wanted is not None, "the spec names a translator"
        context = TranslatorContext(spec.root, spec.name, wanted.arguments, _extra_files(spec))
        sys.path[:0] = [str(path) for path in wanted.path if str(path) not in sys.path]
        module, _, name = wanted.code.partition(":")
        try:
            code = getattr(importlib.import_module(module), name)()
            if prepare := getattr(code, "prepare", None):
                prepare(context)
        except Exception as error:
            raise ServeError(
                Code.LOAD_FAILED,
                f"Model '{spec.name}': its translator {wanted.code} cannot be had: {_told(error)}",
            ) from error
        return CustomTranslator(code, context, spec)


def _extra_files(spec: ModelSpec) -> dict[str, str]:
    names = names_of(spec.parameters.get(EXTRA_FILES, ""))
    if not names:
        return {}
    path = spec.root / spec.entry
    try:
        return extra_texts(path, names)
    except Exception as error:  # a broken archive may have zipfile and its decompressors raise anything
        place = spec.origin.get(f"parameters[{EXTRA_FILES}]", "as read")
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': its extra files ({place}) cannot be read from {path}: {said_by(error)}",
        ) from error


def _tensors(arrays: Mapping[str, Array]) -> Tensors:
    try:
        return Tensors.of(arrays)
    except TypeError as error:
        raise failed(f"process_input returned {error}.") from error


def _answer(made: object) -> Payload:
    """Return tensors for arrays, and a body for bytes, text, and what JSON can hold."""
    if isinstance(made, np.ndarray):
        made = [made]
    if isinstance(made, list | tuple) and made and all(isinstance(one, np.ndarray) for one in made):
        return Tensors.of({f"arr_{i}": one for i, one in enumerate(made)})
    if isinstance(made, bytes | bytearray | memoryview):
        data = bytes(made)
        return Raw((RawPart(data, signature_of(data)),))
    if isinstance(made, str):
        return text_answer(made)
    try:
        return json_answer(made)
    except (TypeError, ValueError) as error:
        raise failed(f"process_output returned what no JSON can hold: {error}.") from error


def _raised(method: str, error: Exception) -> ServeError:
    return failed(f"{method} raised {_told(error)}")


def _told(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-_LINES:]
    places = "; ".join(f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames)
    return f"{named(error)} ({places})"


KIND = CustomKind()
