"""The DJL format: a model folder, an archive of one, or a model store -> a spec per model.

Decides the order of the steps: look, unpack, read, choose, translate. A model that cannot be served is named with all
its faults, and its neighbours load. Source: spec sheet `djl`, sections 2 and 3.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trivium.codecs.java_properties import MAX_BYTES, Properties, read
from trivium.files import open_file
from trivium.formats import archive
from trivium.formats.each import read_each, unopened
from trivium.servers.djl.folder import language_model
from trivium.servers.djl.folder.engine_choice import Choice, choose
from trivium.servers.djl.folder.environment import EnvironmentRules, environment_rules
from trivium.servers.djl.folder.folder import (
    PROPERTIES,
    DjlModelFolder,
    is_archive,
    is_model,
    open_folder,
    store_entries,
)
from trivium.servers.djl.folder.functions import (
    AS_ENGINE,
    around,
    engine_name,
    engine_source,
    functions_of,
    of_engine,
)
from trivium.servers.djl.folder.translation import Translation
from trivium.servers.djl.folder.translator_choice import TranslatorChoice
from trivium.servers.djl.folder.workflow import (
    AS_MODEL,
    FUNCTION,
    as_handler,
    definition_of,
    members_of,
    name_of,
    read_definition,
)
from trivium.servers.djl.words.engines import UNDECIDED
from trivium.servers.djl.words.judging import judge
from trivium.servers.djl.words.layers import from_environment, layered
from trivium.servers.djl.words.naming import inferred_name
from trivium.servers.djl.words.settings import DjlSettings, Placed
from trivium.servers.djl.words.stray_commas import without_stray_commas
from trivium.types import adapters
from trivium.types.errors import ConfigError, frameless
from trivium.types.findings import Finding, Severity
from trivium.types.sources import ModelSource, SourceSetting
from trivium.types.spec import (
    Defaults,
    Join,
    ModelFacts,
    ModelSpec,
    Origin,
    ReadResult,
    TensorSpec,
    TranslatorSpec,
)

NO_RULES = EnvironmentRules()


class DjlFormat:
    """Model folders of DJL Serving. The settings `under` hold for every model whose files do not set them: those of the
    environment and of a server's configuration; `rules` say where environments are made, and
    how many threads workers have. A format that `takes_weights` claims bare folders of language models, too, which
    otherwise have a format of their own.
    """

    def __init__(
        self,
        under: Mapping[str, SourceSetting] | None = None,
        rules: EnvironmentRules = NO_RULES,
        takes_weights: bool = False,
    ) -> None:
        self._under = under or {}
        self._rules = rules
        self._takes_weights = takes_weights

    name = "djl"
    expects = (
        "a folder with serving.properties, a model.py that defines handle(inputs), model.pt or model.onnx, "
        "a .zip or .tar.gz of such a folder, or a folder of those alone; a workflow.json or .yaml, or its folder"
    )

    def claims(self, path: Path) -> bool:
        """A model folder or archive, a folder all of whose entries are such, or the definition of a workflow."""
        try:
            if definition_of(path) is not None or is_model(path) or self._is_weights(path):
                return True
            return path.is_dir() and bool(store_entries(path))
        except (OSError, ValueError):
            return False

    def _is_weights(self, path: Path) -> bool:
        """Is it a bare folder of a language model, which this format takes? Raises OSError."""
        return self._takes_weights and path.is_dir() and language_model.is_weights(path)

    def hint(self, path: Path) -> str:
        """Name a model file of the folder that is named otherwise than the folder."""
        try:
            return "" if not path.is_dir() or path.is_symlink() else open_folder(path).misnamed()
        except (OSError, ValueError):
            return ""

    def read(self, path: Path, defaults: Defaults) -> ReadResult:
        """One version, "1", of each model; archives are unpacked below the server's scratch folder."""
        return self.read_source(path, ModelSource(str(path)), defaults)

    def read_source(self, path: Path, source: ModelSource, defaults: Defaults) -> ReadResult:
        """Read with the source's settings over and under those of serving.properties, as `layers` lays them. The folder
        of a workflow is one, unless the source asks for a model or a function of that folder.
        """
        if path.name in ("", ".."):
            path = path.resolve()
        if FUNCTION in source.over:
            return read_each([path], lambda place: [self._function(place, source, defaults)], _name_of)
        is_model_alone = AS_MODEL in source.over
        source = replace(source, over={key: one for key, one in source.over.items() if key != AS_MODEL})
        is_model_alone = is_model_alone or AS_ENGINE in source.over
        try:
            models = [path] if is_model_alone or self._is_weights(path) else _models(path)
        except OSError as error:
            return ReadResult((), (unopened(_name_of(path), path, frameless(error)),))
        known: dict[str, ModelSpec] = {}

        def read_model(place: Path) -> list[ModelSpec]:
            definition = None if is_model_alone else definition_of(place)
            if definition is not None:
                spec = read_definition(definition, source, defaults)
            else:
                spec = self._model(place, source, defaults)
            if spec.name in known:
                raise ConfigError((_twice(spec, known[spec.name]),))
            known[spec.name] = spec
            return [spec]

        return read_each(models, read_model, _name_of)

    def members(self, spec: ModelSpec) -> Sequence[ModelSource]:
        """See `SupportsMembers`: the models and functions of a workflow."""
        return members_of(spec)

    def _model(self, place: Path, source: ModelSource, defaults: Defaults) -> ModelSpec:
        folder = _opened(place, defaults)
        asked = replace(source, over={key: one for key, one in source.over.items() if key != AS_ENGINE})
        properties = without_stray_commas(layered(_properties(folder), asked, self._under))
        functions = functions_of(properties, folder)
        engine = (properties, folder) if functions is None else of_engine(properties, folder, functions)
        try:
            spec = _read_model(*engine, self._rules, defaults)
            if functions is not None and AS_ENGINE not in source.over:
                member = engine_source(source, str(place), engine_name(source.name or spec.name))
                spec = around(spec, member, functions, folder, properties, self._rules, defaults)
        except ConfigError as error:
            raise ConfigError(_shown(folder, error.findings)) from error
        return replace(spec, reports=_shown(folder, spec.reports), shown_root=folder.shown)

    def _function(self, place: Path, source: ModelSource, defaults: Defaults) -> ModelSpec:
        """Return a function of this definition's folder: a handler whose adapter calls it with all arguments."""
        asked, config = as_handler(source)
        spec = self._model(place.parent if place.is_file() else place, asked, defaults)
        assert spec.handler is not None, "its engine is Python"
        try:
            made = json.loads(config.value)
        except ValueError as error:
            found, hint = f"a configuration that is no JSON: {error}", "Correct the source."
            raise ConfigError(
                (Finding(Severity.ERROR, str(place), None, "", found, "JSON", hint),)
            ) from error
        settings = {**spec.handler.settings, "workflow_function": made}
        origin = {**spec.origin, "handler.settings[workflow_function]": config.origin}
        handler = replace(spec.handler, settings=settings)
        return replace(spec, handler=handler, functions=(), standing=(), origin=origin)

    def finish(self, spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
        """Inputs and outputs as the model file declares them: in binary mode clients send whole tensors. Where requests
        are stacked, the first dimension is the server's.
        """
        translator = spec.translator
        if spec.batching.join is not Join.ROWS:
            if translator is not None and not facts.batchable and _tells(facts):
                translator = replace(translator, most_rows=1)
            facts = _stacked(spec, facts)
        source = Origin(f"the model file {spec.entry}", "")
        origin: Mapping[str, Origin] = {
            **spec.origin,
            **_sources("inputs", facts.inputs, source),
            **_sources("outputs", facts.outputs, source),
        }
        return replace(spec, inputs=facts.inputs, outputs=facts.outputs, origin=origin, translator=translator)


def _stacked(spec: ModelSpec, facts: ModelFacts) -> ModelFacts:
    """Return the facts without their first dimension. Raises ConfigError where that cannot be a batch; a file that does
    not tell its inputs is believed.
    """
    if not _tells(facts):
        return facts
    if not facts.batchable and not _is_single(spec, facts):
        origin = spec.origin["batching.join"]
        place = origin if origin.line else spec.origin["batching.max_rows"]
        found = (
            f"requests are put into one batch by a new dimension, and the model {spec.entry} takes no batch"
        )
        expected = "inputs and outputs whose first dimension is of any size"
        hint = "Export the model with such a dimension, or set batchifier=none and batch_size=1."
        key = place.key or "batchifier"
        fault = Finding(Severity.ERROR, place.file, place.line, key, found, expected, hint)
        raise ConfigError((*spec.reports, fault))
    inputs, outputs = (
        tuple(replace(one, dims=one.dims[1:]) for one in side) for side in (facts.inputs, facts.outputs)
    )
    return replace(facts, inputs=inputs, outputs=outputs)


def _tells(facts: ModelFacts) -> bool:
    """Tell whether the model file says datatypes and shapes."""
    return bool(facts.inputs) and not any(one.open for one in facts.inputs)


def _is_single(spec: ModelSpec, facts: ModelFacts) -> bool:
    """Tell whether a batch of a single row is all that the model takes, and all that is asked of it."""
    is_asked = spec.translator is not None and spec.batching.max_rows == 1
    return is_asked and all(one.dims[:1] in ((1,), (-1,)) for one in (*facts.inputs, *facts.outputs))


def _models(path: Path) -> list[Path]:
    """The path itself, that of a workflow, too, or the entries of a model store. A folder that holds a single model
    folder is a store of one: that model keeps its name when a second one comes. Raises OSError.
    """
    if definition_of(path) is not None or is_archive(path):
        return [path]
    if is_model(path) and open_folder(path).path == path:
        return [path]
    return store_entries(path) or [path]


def _opened(path: Path, defaults: Defaults) -> DjlModelFolder:
    """The folder, or what an archive holds. Raises OSError and ConfigError."""
    if not is_archive(path):
        return open_folder(path)
    if defaults.scratch is None:
        found = "an archive, and there is no folder in which to unpack it"
        hint = "Unpack it, and serve the folder."
        raise ConfigError((Finding(Severity.ERROR, str(path), None, "", found, "a scratch folder", hint),))
    root = archive.unpack(path, defaults.scratch)
    folder = open_folder(root, path.name)
    return replace(folder, shown=path / folder.path.relative_to(root))


def _properties(folder: DjlModelFolder) -> Properties:
    if PROPERTIES not in folder.files:
        return Properties(str(folder.path), {})
    file = folder.path / PROPERTIES
    with open_file(file) as opened:
        return read(str(file), opened.read(MAX_BYTES + 1))


def _read_model(
    properties: Properties, folder: DjlModelFolder, rules: EnvironmentRules, defaults: Defaults
) -> ModelSpec:
    settings = DjlSettings(properties, list(properties.findings))
    if language_model.is_language_model(settings, folder):
        choice = language_model.choose(settings, folder, defaults)
    else:
        choice = choose(settings, folder)
    if choice is None:
        raise ConfigError((*settings.findings, *judge(properties, UNDECIDED)))
    translator = _translator(settings, folder, choice, rules, defaults)
    settings.findings += judge(properties, choice.engine.value, translator is not None)
    spec = Translation(settings, folder, choice, defaults, rules, translator).spec()
    _note_contents(settings, folder, choice)
    if any(finding.severity is Severity.ERROR for finding in settings.findings):
        raise ConfigError(tuple(settings.findings))
    return replace(spec, reports=tuple(settings.findings))


def _translator(
    settings: DjlSettings, folder: DjlModelFolder, choice: Choice, rules: EnvironmentRules, defaults: Defaults
) -> Placed[TranslatorSpec] | None:
    """Return the translator of a model file; a handler translates by itself."""
    engine = choice.engine.value
    if engine.runs_handlers or engine.generates or engine.answers_bodies:
        return None
    entries = settings.properties.entries
    arguments = {
        key: entry.value
        for key, entry in entries.items()
        if key not in engine.keys and not key.startswith("option.")
    }
    return TranslatorChoice(settings, folder, arguments, rules.task, defaults.places).choose()


def _shown(folder: DjlModelFolder, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings in the words of who gave an archive, who knows nothing of where it was unpacked."""
    if folder.shown is None:
        return findings
    path, shown = str(folder.path), str(folder.shown)
    return tuple(
        replace(each, file=each.file.replace(path, shown), found=each.found.replace(path, shown))
        for each in findings
    )


def _note_contents(settings: DjlSettings, folder: DjlModelFolder, choice: Choice) -> None:
    engine = choice.engine.value
    if not (engine.runs_handlers or engine.generates):
        return
    if adapters.FOLDER in folder.folders and not settings.takes_adapters:
        hint = "Write option.enable_lora=true"
        hint += ", and let the handler define register_adapter." if engine.runs_handlers else "."
        settings.notice("", "the folder adapters is not looked into: the model takes no adapters", hint)


def _sources(field: str, tensors: tuple[TensorSpec, ...], source: Origin) -> dict[str, Origin]:
    parts = ("name", "datatype", "dims")
    return {f"{field}[{i}].{part}": source for i in range(len(tensors)) for part in parts}


def _name_of(path: Path) -> str:
    try:
        definition = definition_of(path)
    except (OSError, ValueError):
        definition = None
    return inferred_name(path.name) if definition is None else name_of(definition)


def _twice(spec: ModelSpec, first: ModelSpec) -> Finding:
    found = f"a second model named '{spec.name}', after DJL's rule for names"
    hint = f"The first is in {first.root}; rename one of them."
    return Finding(Severity.ERROR, str(spec.root), None, "", found, "names that differ", hint)


def made(variables: Mapping[str, str]) -> DjlFormat:
    """Make the format for a server with this environment."""
    return DjlFormat(from_environment(variables), environment_rules(variables))
