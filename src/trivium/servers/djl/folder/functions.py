"""Functions of a model.py around DJL's own engine -> a model that runs them in a worker, and calls the language model.

Such a model.py defines no `handle`: it changes what is asked (`@input_formatter`) or how the answer is written
(`@output_formatter`). The folder becomes two models: the worker under the folder's name, and the engine beside it.
Source: spec sheet `djl`, section 11.6.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from trivium.codecs.java_properties import Properties
from trivium.servers.djl.folder.engine_choice import Choice
from trivium.servers.djl.folder.environment import EnvironmentRules
from trivium.servers.djl.folder.folder import DjlModelFolder
from trivium.servers.djl.folder.language_model import is_language_model
from trivium.servers.djl.folder.translation import ROLLING_SIZE, Translation
from trivium.servers.djl.folder.workflow import DIALECT, WorkflowMembers
from trivium.servers.djl.words.engines import PYTHON
from trivium.servers.djl.words.handlers import names_of
from trivium.servers.djl.words.lmi_runtimes import HANDLERS
from trivium.servers.djl.words.served_code import AROUND, formatters_of
from trivium.servers.djl.words.settings import DjlSettings, Placed
from trivium.types.sources import ModelSource, SourceSetting
from trivium.types.spec import Batching, Defaults, Foreign, InstanceGroup, ModelSpec, Origin

FILE = "model.py"
AS_ENGINE = "trivium_as_engine"
"""Setting of a source by which a folder is read as its language model alone, without the functions around it."""

_ENTRY, _HANDLER = "option.entryPoint", "option.handler"
_KEYS: Mapping[str, str] = {name: f"option.{name}" for name in AROUND}


@dataclass(frozen=True, slots=True)
class EngineFunctions:
    """Names functions of the folder's model.py by what they are: an option's own choice, else empty where the file's
    decorator says it.
    """

    named: Mapping[str, str]


def functions_of(properties: Properties, folder: DjlModelFolder) -> EngineFunctions | None:
    """Return the functions around a language model; None for a folder that has none, or a handler of its own."""
    if FILE not in folder.files:
        return None
    settings = DjlSettings(properties)
    text = folder.text(FILE)
    names = names_of(text) or frozenset()
    entry, handler = settings.text([_ENTRY]).value, settings.text([_HANDLER], "handle").value
    if (entry and entry not in HANDLERS) or (not entry and handler in names):
        return None
    written = {name: settings.text([key]).value for name, key in _KEYS.items()}
    named = {name: word for name, word in written.items() if word in names}
    decorators = {decorator for decorator, _ in formatters_of(text).values()}
    if not named and not (decorators and decorators <= set(AROUND)):
        return None
    functions = EngineFunctions(named)
    ours, files = of_engine(properties, folder, functions)
    return functions if is_language_model(DjlSettings(ours), files) else None


def engine_name(name: str) -> str:
    """Return the name of the language model that the functions of another are around."""
    return f"{name}:engine"


def of_engine(
    properties: Properties, folder: DjlModelFolder, functions: EngineFunctions
) -> tuple[Properties, DjlModelFolder]:
    """Return the settings and files of the language model alone."""
    ours = {_KEYS[name] for name in functions.named}
    entries = {key: entry for key, entry in properties.entries.items() if key not in ours}
    return replace(properties, entries=entries), replace(folder, files=folder.files - {FILE})


def engine_source(source: ModelSource, place: str, name: str) -> ModelSource:
    """Return the source of the language model, which asks for the same as that of the functions."""
    over = {**source.over, AS_ENGINE: SourceSetting("true", Origin(f"the functions of {FILE}", ""))}
    return replace(source, uri=place, name=name, over=over, is_named_after_uri=False)


def around(  # noqa: PLR0913 - a folder, as it is read
    engine: ModelSpec,
    source: ModelSource,
    functions: EngineFunctions,
    folder: DjlModelFolder,
    properties: Properties,
    rules: EnvironmentRules,
    defaults: Defaults,
) -> ModelSpec:
    """Return the model that runs the functions: a handler whose worker calls the `engine`, which `source` asks for."""
    origin = Origin(str(folder.path / FILE), "")
    choice = Choice(
        Placed(PYTHON, origin), Placed(FILE, origin), Placed("handle", origin), Placed(False, origin)
    )
    made = Translation(DjlSettings(properties), folder, choice, defaults, rules).spec()
    assert made.handler is not None, "its engine is Python"
    slots = int(engine.parameters.get("slots", ROLLING_SIZE))
    settings = {
        "properties": made.handler.settings["properties"],
        "in_flight": slots,
        "engine": {
            "name": source.name,
            "weights": str(engine.root.absolute()),
            "named": dict(functions.named),
            "asynchronous": engine.parameters.get("async_mode") == "true",
        },
    }
    said = (
        "engine",
        "entry",
        "handler.settings",
        "groups",
        "batching",
        "calls",
        "streams",
        "details[functions]",
    )
    return replace(
        made,
        handler=replace(made.handler, settings=settings),
        groups=(InstanceGroup(made.name),),
        batching=Batching(),
        scheduling=engine.scheduling,
        limits=replace(made.limits, memory=()),
        streams=True,
        calls=(source.name,),
        foreign=Foreign(DIALECT, WorkflowMembers((source,))),
        details={"functions": f"around {source.name}"},
        reports=(),  # what there is to say is said of the engine
        origin={**made.origin, **dict.fromkeys(said, origin)},
    )
