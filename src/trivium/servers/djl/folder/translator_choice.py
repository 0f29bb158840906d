"""Chooses the translator of a folder with a model file, or says why the one that it asks for cannot be had.

Source: spec sheet `djl`, section 10: the argument translatorFactory goes first, then a class of the folder's own, then
an application or a task; without any the model takes tensors.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from trivium.servers.djl.folder.folder import DjlModelFolder
from trivium.servers.djl.words import translators
from trivium.servers.djl.words.settings import DjlSettings, Placed
from trivium.types.findings import Change
from trivium.types.spec import Origin, TranslatorSpec

_FACTORY, _CLASS, _APPLICATION, _TASK = "translatorFactory", "translator", "application", "task"
_FILE = "translator.py"
_LIBRARIES = ("libs", "lib")
_JAVA = (".java", ".class", ".jar")
_MOST_LISTED = 1000
_PORT = (
    "Write the class in Python, as translator.py beside the model: class CustomTranslator with prepare(self, ctx), "
    "process_input(self, ctx, input), which returns arrays, and process_output(self, ctx, arrays), which returns the "
    "answer; trivium.translators.kit has resize, center_crop, to_tensor, softmax and classifications. docs/djl.md "
    "shows one, line by line."
)


class TranslatorChoice:
    """Chooses for one folder. `arguments` are what the translator gets; errors gather in `settings`. `task` is that of
    the environment; requests may have something fetched from `places`.
    """

    def __init__(
        self,
        settings: DjlSettings,
        folder: DjlModelFolder,
        arguments: Mapping[str, str],
        task: str = "",
        places: str = "",
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._arguments = arguments
        self._task = task
        self._places = places

    def choose(self) -> Placed[TranslatorSpec] | None:
        """Return the translator; None where there is none, or an error."""
        factory = self._settings.text([_FACTORY])
        if factory.value and factory.value != translators.DEFERRED:
            return self._of_factory(factory)
        written = self._settings.text([_CLASS])
        if translators.is_python_class(written.value):
            return self._of_class(written)
        if own := self._found():
            return own
        java = self._java()
        if written.value or java:
            self._refuse_java(written.value, java)
            return None
        return self._of_task()

    def _of_factory(self, factory: Placed[str]) -> Placed[TranslatorSpec] | None:
        name = translators.translator_of(factory.value, self._arguments)
        if name:
            return self._made(name, factory.origin)
        if factory.value in translators.PLAIN:
            return None
        known = ", ".join(each.rpartition(".")[2] for each in translators.FACTORIES)
        makes = translators.NOT_SERVED.get(factory.value)
        near = translators.nearest_factory(factory.value)
        found = f"{_FACTORY}={factory.value[:200]}"
        if makes:
            found = f"{found}, which makes {makes}, is not served in this version"
            hint = "Serve the tensors themselves, or write a translator.py, or a model.py."
        elif near:
            found, hint = f"{found} is no factory that can be had", f"Did you mean {near}?"
        else:
            found, hint = f"{found} is no factory that can be had: classes in Java do not run here", _PORT
        mends = (Change(value=near),) if near and not makes else ()
        self._settings.fault(_FACTORY, found, f"one of {known}", hint, *mends)
        return None

    def _of_class(self, written: Placed[str]) -> Placed[TranslatorSpec] | None:
        module, _, name = written.value.partition(":")
        file = f"{module.replace('.', '/')}.py"
        for place in self._places_of_code():
            text = self._folder.text(str(place / file))
            if not text:
                continue
            if name in translators.classes_of(text):
                return self._custom(written.value, place, written.origin)
            there = ", ".join(translators.classes_of(text)) or "none"
            found = f"{place / file} has no class {name} with process_input and process_output"
            self._settings.fault(_CLASS, found, "a translator of that file", f"It has: {there}.")
            return None
        self._settings.fault(
            _CLASS,
            f"no file {file} in {self._folder.path}",
            "a file of the folder, or of its libs",
            "Add it.",
        )
        return None

    def _found(self) -> Placed[TranslatorSpec] | None:
        """Return the first class of the folder's own that is a translator."""
        for place in self._places_of_code():
            names = [_FILE] if place == PurePosixPath() else sorted(self._names(place, (".py",)))
            for name in names:
                classes = translators.classes_of(self._folder.text(str(place / name)))
                if classes:
                    origin = Origin(str(self._folder.path / place / name), "")
                    return self._custom(f"{name.removesuffix('.py')}:{classes[0]}", place, origin)
        return None

    def _of_task(self) -> Placed[TranslatorSpec] | None:
        for key in (_APPLICATION, _TASK):
            written = self._settings.text([key])
            if written.value:
                break
        else:
            written = Placed(self._task, Origin("the environment", "HF_TASK"))
        name = translators.translator_for(written.value)
        if name:
            return self._made("cross-encoder" if self._reranks(name) else name, written.origin)
        if written.value and written.origin.key != "HF_TASK":
            known = ", ".join(translators.APPLICATIONS)
            found = f"{written.origin.key}={written.value[:80]}: there is no translator for it"
            self._settings.fault(
                written.origin.key, found, f"one of {known}", "Remove the line to serve tensors."
            )
        return None

    def _reranks(self, name: str) -> bool:
        return name == "text-embedding" and self._arguments.get("reranking", "").strip().lower() == "true"

    def _refuse_java(self, written: str, java: str) -> None:
        found = f"{_CLASS}={written[:200]}, a class in Java" if written else f"a translator in Java ({java})"
        self._settings.fault(_CLASS, f"{found}, which does not run here", "a translator in Python", _PORT)

    def _java(self) -> str:
        for library in _LIBRARIES:
            for place in (PurePosixPath(library, "classes"), PurePosixPath(library)):
                for name in self._names(place, _JAVA):
                    return str(place / name)
        return ""

    def _places_of_code(self) -> Iterator[PurePosixPath]:
        yield PurePosixPath()
        yield from map(PurePosixPath, _LIBRARIES)

    def _names(self, place: PurePosixPath, suffixes: tuple[str, ...]) -> list[str]:
        """Return the names of the files there that end so; none where it cannot be looked into."""
        found: list[str] = []
        try:
            for number, entry in enumerate((self._folder.path / place).iterdir()):
                if number >= _MOST_LISTED:
                    break
                if entry.name.endswith(suffixes) and entry.is_file():
                    found.append(entry.name)
        except (OSError, ValueError):
            return []
        return found

    def _custom(self, code: str, place: PurePosixPath, origin: Origin) -> Placed[TranslatorSpec]:
        path: tuple[Path, ...] = (self._folder.path / place, self._folder.path)
        return Placed(
            TranslatorSpec("custom", dict(self._arguments), code, tuple(dict.fromkeys(path)), self._places),
            origin,
        )

    def _made(self, name: str, origin: Origin) -> Placed[TranslatorSpec]:
        return Placed(TranslatorSpec(name, dict(self._arguments), places=self._places), origin)
