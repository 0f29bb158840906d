"""A workflow's definition -> its models, functions, adapters and graph, or everything that is wrong with it.

Source: spec sheet `djl`, section 6.1. Pure. All of it is judged before anything is loaded; a function is Python here,
`module:attr`, so that one in Java is refused with its port.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from trivium.codecs.near_names import near
from trivium.servers.djl.words.model_urls import LOCAL, DjlModelUrl, read_devices, read_url
from trivium.servers.djl.words.workflow_documents import MODEL_DIR, Place, WorkflowText, shown
from trivium.servers.djl.words.workflow_graphs import Callables, Expressions, FunctionPlace, ModelPlace
from trivium.types import adapters
from trivium.types.errors import ConfigError, ServeError
from trivium.types.findings import Change
from trivium.types.schedules import Graph
from trivium.types.sources import ModelSource, SourceSetting
from trivium.types.spec import Origin, StandingCall

TEMPLATES = Path(__file__).parent / "templates"
"""Definitions that are there by name; each is a file."""

TEMPLATE_NAMES = ("adapter",)
TEMPLATE_PARAMETERS = ("adapter", "url", "model")
"""What whoever asks for it fills it with."""

_MEMBERS = ("name", "version", "models", "functions", "configs", "workflow")
_DEFAULTS: Mapping[str, str] = {
    "minWorkers": "minWorkers",
    "maxWorkers": "maxWorkers",
    "queueSize": "job_queue_size",
    "maxIdleTime": "max_idle_time",
    "maxIdleSeconds": "max_idle_time",
    "maxBatchDelay": "max_batch_delay",
    "maxBatchDelayMillis": "max_batch_delay",
    "batchSize": "batch_size",
}
"""Member of a definition, or of one of its models, that is a number -> the key of serving.properties."""

_WITHOUT_EFFECT = ("retryAttempts", "timeout")
_TEXTS: Mapping[str, str] = {
    "modelName": "option.modelName",
    "application": "application",
    "translator": "translator",
    "translatorFactory": "translatorFactory",
}
_MODEL_MEMBERS = (
    *("modelUrl", "version", "engineName", "loadOnDevices", "filters", "arguments", "options"),
    *("dynamicAdapters", *_TEXTS, *_DEFAULTS),
)
_ADAPTER_MEMBERS = ("model", "src", "options", "name")
_CODE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_NAME = re.compile(r"[^\s/\x00-\x1f\x7f](?:[^/\x00-\x1f\x7f]{0,198}[^\s/\x00-\x1f\x7f])?")
_MOST = 200
"""Models, and functions, that one workflow has at most."""

_PORT = (
    "Write it in Python, as a file beside the definition: def {name}(input): ..., which gets djl_python's Input for "
    "each of its arguments and returns an Output, text, bytes or a value for JSON; name it "
    '"{name}": "FILE:{name}".'
)


@dataclass(frozen=True, slots=True)
class WorkflowFunction:
    """A function in Python, `code` as module:attr, and its configuration as JSON. `calls` are the numbers of arguments
    that it is called with.
    """

    code: str
    config: str
    origin: Origin
    calls: frozenset[int]


@dataclass(frozen=True, slots=True)
class Workflow:
    """A definition that can be served. Its models and functions are by the names that the steps of its graph have for
    them; those that no step needs are left out.
    """

    name: str
    version: str
    graph: Graph
    models: Mapping[str, ModelSource]
    functions: Mapping[str, WorkflowFunction]
    standing: tuple[StandingCall, ...]
    origins: Mapping[str, Origin] = field(default_factory=dict)


def read_workflow(text: WorkflowText, name: str, version: str, default_name: str) -> Workflow:
    """Return the workflow of a definition. `name` goes before its own, its own version before `version`, and
    `default_name` is for one without. Raises ConfigError with all that is wrong; notices go to the text's findings.
    """
    return _Reading(text, name, version, default_name).workflow()


def function_member(workflow: str, function: str) -> str:
    """Return the name under which a function is served."""
    return f"{workflow}:{function}"


class _Reading:
    def __init__(self, text: WorkflowText, name: str, version: str, default_name: str) -> None:
        self._text = text
        self._values = text.values
        own = self._word(("name",))
        if own and not _NAME.fullmatch(own):
            text.fault(
                ("name",), shown(own), "a name of at most 200 characters without slashes", "Correct it."
            )
        self.name = name or own or default_name
        written = self._word(("version",), is_version=True)
        self.version = written or version
        self._own = [key for key, is_own in (("name", own and not name), ("version", written)) if is_own]

    def workflow(self) -> Workflow:
        """See `read_workflow`."""
        self._check_members((), self._values, (*_MEMBERS, *_DEFAULTS, *_WITHOUT_EFFECT))
        for key in _WITHOUT_EFFECT:
            if key in self._values:
                self._text.notice(
                    (key,), f"{key} has no effect: no step is tried again, each model has its deadline"
                )
        models, dynamic = self._models()
        functions = self._functions()
        calls = self._adapters(models)
        callables = Callables(
            {
                local: ModelPlace(local, source.version, local not in dynamic)
                for local, source in models.items()
            },
            {local: FunctionPlace(function_member(self.name, local), self.version) for local in functions},
            {topic: model for topic, (model, _) in calls.items()},
        )
        expressions = Expressions(self._text, callables)
        graph, counts = expressions.graph()
        if self._text.has_faults:
            raise ConfigError(tuple(self._text.findings))
        origins = {
            f"scheduling.steps[{i}]": self._origin(place) for i, place in enumerate(expressions.places(graph))
        }
        return replace(self._made(graph, models, functions, counts, calls), origins=self._origins() | origins)

    def _origins(self) -> dict[str, Origin]:
        return {"scheduling": self._origin(("workflow",)), **{key: self._origin((key,)) for key in self._own}}

    def _made(
        self,
        graph: Graph,
        models: Mapping[str, ModelSource],
        functions: Mapping[str, tuple[str, str]],
        counts: Mapping[str, frozenset[int]],
        calls: Mapping[str, tuple[str, StandingCall]],
    ) -> Workflow:
        used = graph.models
        for local in models:
            if local not in used:
                self._text.notice(
                    ("models", local), f"no value that is needed comes from {local}: it is not loaded"
                )
        for local in functions:
            if function_member(self.name, local) not in used:
                self._text.notice(
                    ("functions", local), f"nothing that is needed calls {local}: it is not loaded"
                )
        topics = {step.adapter for step in graph.steps}
        return Workflow(
            self.name,
            self.version,
            graph,
            {local: source for local, source in models.items() if local in used},
            {
                member: WorkflowFunction(code, config, self._origin(("functions", local)), counts[local])
                for local, (code, config) in functions.items()
                if (member := function_member(self.name, local)) in used
            },
            tuple(call for topic, (_, call) in calls.items() if topic in topics),
        )

    # -- models --------------------------------------------------------------------------------------------

    def _models(self) -> tuple[dict[str, ModelSource], set[str]]:
        """Return the source of each model, and which of them take adapters that nobody has registered."""
        found: dict[str, ModelSource] = {}
        dynamic: set[str] = set()
        for local, value in self._named_members("models").items():
            place: Place = ("models", local)
            described = {"modelUrl": value} if isinstance(value, str) else value
            if not isinstance(described, dict):
                self._text.fault(place, shown(value), "a URL, or an object with modelUrl", "Correct it.")
                continue
            where = place if isinstance(value, str) else (*place, "modelUrl")
            if not isinstance(value, str):
                self._check_members(place, described, _MODEL_MEMBERS)
            url = self._url(where, described.get("modelUrl"))
            if url is not None:
                found[local] = self._source(place, local, url, described)
            if self._is_true((*place, "dynamicAdapters"), described.get("dynamicAdapters")):
                dynamic.add(local)
        return found, dynamic

    def _url(self, place: Place, value: object) -> DjlModelUrl | None:
        expected = "the URL or path of a model"
        if not isinstance(value, str) or not value.strip():
            self._text.fault(
                place, "no modelUrl" if value is None else shown(value), expected, "Name the model."
            )
            return None
        try:
            url = read_url(value.strip())
        except ServeError as error:
            self._text.fault(place, shown(value), expected, error.message)
            return None
        if url.scheme != LOCAL and "://" not in url.place:
            hint = "Download the model, and give the path of its folder or archive."
            self._text.fault(place, f"models are not fetched from {url.scheme}://", expected, hint)
            return None
        if url.is_definition:
            hint = "Name its models here, and write its expressions below workflow."
            self._text.fault(place, f"{shown(value)}, a workflow", expected, hint)
            return None
        if url.scheme == LOCAL and not url.place.startswith("/"):
            found = f"{shown(value)}, a path that begins where the server was started"
            self._text.notice(
                place, found, f"Write {{{MODEL_DIR}}}/{url.place} to have it begin at this file."
            )
        return url

    def _source(
        self, place: Place, local: str, url: DjlModelUrl, described: Mapping[str, object]
    ) -> ModelSource:
        over = {key: SourceSetting(text, self._origin(place)) for key, text in url.arguments.items()}
        for member, key in (*_DEFAULTS.items(), *_TEXTS.items()):
            self._set(over, (*place, member), key, described.get(member))
        for member, prefix in (("arguments", ""), ("options", "option.")):
            values = described.get(member)
            if values is not None and not isinstance(values, dict):
                self._text.fault((*place, member), shown(values), "an object of values", "Correct it.")
            for key, value in values.items() if isinstance(values, dict) else ():
                self._set(over, (*place, member, key), f"{prefix}{key}", value)
        if described.get("filters"):
            self._text.notice(
                (*place, "filters"), "filters has no effect: it chooses among the models of DJL's zoo"
            )
        under: dict[str, SourceSetting] = {}
        for member, key in _DEFAULTS.items():
            self._set(under, (member,), key, self._values.get(member))
        return ModelSource(
            url.place,
            local,
            self._word((*place, "version"), is_version=True, given=described.get("version")) or url.version,
            self._word((*place, "engineName"), given=described.get("engineName")) or url.engine,
            self._devices((*place, "loadOnDevices"), described.get("loadOnDevices")) or url.devices,
            over,
            under,
        )

    def _devices(self, place: Place, value: object) -> tuple[str, ...]:
        words = value if isinstance(value, list) else [value] if value is not None else []
        try:
            return tuple(name for word in words for name in read_devices(str(word)))
        except ServeError as error:
            self._text.fault(place, shown(value), "devices such as *, cpu or gpu0;gpu1", error.message)
            return ()

    def _set(self, into: dict[str, SourceSetting], place: Place, key: str, value: object) -> None:
        if value is None:
            return
        if isinstance(value, dict | list | bytes):
            self._text.fault(place, shown(value), "a text, a number or a truth value", "Correct it.")
            return
        text = str(value).lower() if isinstance(value, bool) else str(value)
        into[key] = SourceSetting(text, self._origin(place))

    # -- functions, configurations -------------------------------------------------------------------------

    def _functions(self) -> dict[str, tuple[str, str]]:
        """Return code and configuration of each function."""
        found: dict[str, tuple[str, str]] = {}
        for local, value in self._named_members("functions").items():
            place: Place = ("functions", local)
            if not isinstance(value, str) or not _CODE.fullmatch(value):
                is_java = isinstance(value, str) and re.fullmatch(r"[\w$]+(\.[\w$]+)+", value)
                what = f"{value}, a class in Java, which does not run here" if is_java else shown(value)
                name = local if local.isidentifier() else "function"
                self._text.fault(
                    place, what[:200], "a function in Python, as module:name", _PORT.format(name=name)
                )
                value = ""  # its name is known all the same: it is not at fault where it is called
            found[local] = value, self._config(local)
        return found

    def _config(self, local: str) -> str:
        configs = self._object(("configs",))
        value = configs.get(local, {})
        try:
            return json.dumps(value, allow_nan=False, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            self._text.fault(
                ("configs", local), f"a value that JSON has not: {error}", "plain values", "Correct it."
            )
            return "{}"

    def _adapters(self, models: Collection[str]) -> dict[str, tuple[str, StandingCall]]:
        """Return the model of each adapter, and the call that registers it there."""
        configs = self._object(("configs",))
        known = {*self._object(("functions",)), "adapters"}
        for name in configs:
            if name not in known:
                self._text.notice(
                    ("configs", str(name)), f"there is no function {name} that it is for", "Rename it."
                )
        place: Place = ("configs", "adapters")
        found: dict[str, tuple[str, StandingCall]] = {}
        for topic, value in self._object(place).items():
            here: Place = (*place, topic)
            if not isinstance(value, dict):
                self._text.fault(
                    here, shown(value), 'an object such as {"model": "m", "src": "/a"}', "Correct it."
                )
                continue
            self._check_members(here, value, _ADAPTER_MEMBERS)
            model, src = (self._word((*here, key), given=value.get(key)) for key in ("model", "src"))
            if model not in models:
                hint, meant = _near(model, models)
                mends = (Change(value=json.dumps(meant)),) if meant else ()
                self._text.fault((*here, "model"), f"no model {shown(model)}", "one of models", hint, *mends)
            if "://" in src and not src.lower().startswith("file://"):
                self._text.fault((*here, "src"), shown(src), "a path of this machine", "Download it.")
            src = "/" + src[len("file://") :].lstrip("/") if src.lower().startswith("file://") else src
            found[topic] = model, self._registration(here, topic, src, value.get("options"))
        return found

    def _registration(self, place: Place, topic: str, src: str, options: object) -> StandingCall:
        arguments = {"name": topic, "src": src}
        if options is not None and not isinstance(options, dict):
            self._text.fault((*place, "options"), shown(options), "an object of texts", "Correct it.")
        arguments |= (
            {str(key): str(value) for key, value in options.items()} if isinstance(options, dict) else {}
        )
        made = adapters.payload(topic, src)
        undo = adapters.UNREGISTER
        return StandingCall(topic, adapters.REGISTER, made.properties, tuple(arguments.items()), undo)

    # -- values --------------------------------------------------------------------------------------------

    def _named_members(self, key: str) -> dict[str, object]:
        values = self._object((key,))
        if len(values) > _MOST:
            self._text.fault((key,), f"{len(values)} of them", f"at most {_MOST}", "Divide the workflow.")
            return {}
        for name in values:
            if not _NAME.fullmatch(name):
                expected = "names of at most 200 characters without slashes"
                self._text.fault((key,), f"the name {shown(name)}", expected, "Rename it.")
        return values

    def _object(self, place: Place) -> dict[str, object]:
        value: object = self._values
        for key in place:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            self._text.fault(place, shown(value), "an object", "Correct it.")
            return {}
        return value

    def _word(self, place: Place, is_version: bool = False, given: object = None) -> str:
        value = self._values.get(str(place[0])) if len(place) == 1 else given
        if value is None:
            return ""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if isinstance(value, str) or (is_version and is_number):
            word = str(value).strip()
            if not is_version or not word or _NAME.fullmatch(word):
                return word
        self._text.fault(place, shown(value), "a text", "Put it into quotation marks.")
        return ""

    def _is_true(self, place: Place, value: object) -> bool:
        if value is not None and not isinstance(value, bool) and str(value).lower() not in ("true", "false"):
            self._text.fault(place, shown(value), "true or false", "Correct it.")
        return str(value).lower() == "true"

    def _check_members(self, place: Place, there: Mapping[str, object], known: Collection[str]) -> None:
        for key in there:
            if key not in known:
                expected = f"one of {', '.join(dict.fromkeys(known))}"
                hint, meant = _near(key, known)
                mends = (Change(name=meant),) if meant else ()
                found = f"no member of that name: {shown(key)}"
                self._text.fault((*place, str(key)), found, expected, hint, *mends)

    def _origin(self, place: Place) -> Origin:
        text = self._text
        here = text.line(place) if place in text.lines or len(place) > 1 else None
        return Origin(text.file, ".".join(map(str, place)), here)


def _near(name: object, known: Collection[str]) -> tuple[str, str]:
    """Return a hint, and the name that was meant, if one was."""
    meant = near(str(name), known)
    return f"Did you mean {meant}?" if meant else "Correct it, or remove it.", meant
