"""The models that a TorchServe starts with: `--models`, `load_models`, and the properties `models`, `model_snapshot`.

Decides what each word stands for; looks at no file. Source: spec sheet `torchserve`, sections 1 and 2. Pure.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from trivium.settings.judging import meant_by
from trivium.types.errors import Code, ServeError
from trivium.types.sources import SourceSetting
from trivium.types.spec import Origin

ALL = "all"
ARCHIVES = (".mar", ".model", ".tar.gz")
"""Ends of the names that `all` takes of a store, beside folders."""

VERSION_KEYS = (
    "minWorkers",
    "maxWorkers",
    "batchSize",
    "maxBatchDelay",
    "responseTimeout",
    "startupTimeout",
)
"""Keys of a version in the property `models`, which are those of model-config.yaml; each is a number from 1 on."""

UNUSED_KEYS = ("defaultVersion", "marName", "runtimeType", "parallelLevel", "parallelType")
"""Keys there that describe a model, or that model-config.yaml has to give."""

_JSON_SIGNS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_CLOSING = {"}": "{", "]": "["}

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, slots=True)
class StartModel:
    """One word of a list: the name that is asked for, or none, and a place: below the store, absolute, or a URL."""

    item: str
    name: str
    place: str

    @property
    def is_url(self) -> bool:
        """Tell whether it lies elsewhere."""
        return bool(_URL.match(self.place))

    @property
    def leaves(self) -> bool:
        """Tell whether a place below the store leads out of it."""
        return ".." in PurePosixPath(self.place).parts


def read_start_models(text: str) -> list[StartModel]:
    """Return the words of a list, in their order; `all` is one, and stands for all that is there."""
    found = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, sign, place = item.partition("=")
        if not sign or "/" in name or ":" in name:  # the sign belongs to a path, or to a query
            name, place = "", item
        found.append(StartModel(item, name.strip(), place.strip()))
    return found


@dataclass(frozen=True, slots=True)
class VersionRules:
    """Reads the property `models`: settings by name and version, what is wrong with it, and what has no effect."""

    settings: Mapping[tuple[str, str], Mapping[str, SourceSetting]]
    notices: tuple[str, ...] = ()


def read_version_rules(text: str, origin: Origin) -> VersionRules:
    """Read JSON like `{"NAME": {"VERSION": {"minWorkers": 1}}}`. Raises INVALID for what is none. A value that is no
    whole number from 1 on counts as absent, as in the original, and is a notice.
    """
    document = _object(text)
    found: dict[tuple[str, str], Mapping[str, SourceSetting]] = {}
    notices: list[str] = []
    for name, versions in document.items():
        if not isinstance(versions, dict):
            raise _unfit(f"models.{name} is {_shown(versions)}, and needs an object of versions")
        for version, rules in versions.items():
            if not isinstance(rules, dict):
                raise _unfit(f"models.{name}.{version} is {_shown(rules)}, and needs an object of values")
            found[name, version] = _settings(f"models.{name}.{version}", rules, origin, notices)
    return VersionRules(found, tuple(notices))


def _settings(
    what: str, rules: Mapping[str, object], origin: Origin, notices: list[str]
) -> Mapping[str, SourceSetting]:
    found = {}
    for key, value in rules.items():
        if key in VERSION_KEYS:
            if type(value) is int and 1 <= value < 2**31:
                found[key] = SourceSetting(str(value), origin)
            else:
                why = "no whole number from 1 on: it counts as absent"
                notices.append(f"{what}.{key} is {_shown(value)}, {why}")
        elif key not in UNUSED_KEYS:
            known = ", ".join((*VERSION_KEYS, *UNUSED_KEYS))
            meant = meant_by(key, VERSION_KEYS)
            hint = f"Did you mean {meant}?" if meant else f"There are {known}"
            notices.append(f"{what}.{key} is no key, and has no effect. {hint}")
    return found


@dataclass(frozen=True, slots=True)
class ModelSnapshot:
    """Reads the property `model_snapshot`: its models, what it has of them as JSON, for `read_version_rules`, and the
    versions that serve by default where a model has several.
    """

    models: list[StartModel]
    rules: str
    defaults: tuple[tuple[str, str], ...] = ()


def read_snapshot(text: str) -> ModelSnapshot:
    """Return what a snapshot has. Raises INVALID for what is none."""
    models = _object(text).get("models")
    if not isinstance(models, dict):
        raise _unfit('there is no object "models" in it')
    found: list[StartModel] = []
    defaults: list[tuple[str, str]] = []
    for name, versions in models.items():
        if not isinstance(versions, dict):
            raise _unfit(f"models.{name} is {_shown(versions)}, and needs an object of versions")
        for version, rules in versions.items():
            if len(versions) > 1 and isinstance(rules, dict) and rules.get("defaultVersion") is True:
                defaults.append((name, version))
            archive = rules.get("marName") if isinstance(rules, dict) else None
            if not isinstance(archive, str) or not archive:
                raise _unfit(f"models.{name}.{version} names no archive (marName)")
            found.append(StartModel(archive, name, archive))
    return ModelSnapshot(found, json.dumps(models), tuple(defaults))


def _object(text: str) -> dict[str, object]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unfit(f"it is no JSON: {json_fault(text)[1]}") from error
    if not isinstance(document, dict):
        raise _unfit(f"it is {_shown(document)}")
    return document


def json_fault(text: str) -> tuple[int, str]:
    """Return where a text stops being JSON, and what is wrong there: a brace that is missing or one too many by what
    stands around it. An empty sentence: nothing is.
    """
    at, why = _stops_at(text)
    return _brace_fault(text) or (at, f"{why} behind {_before(text, at)}") if why else (0, "")


def _stops_at(text: str) -> tuple[int, str]:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos, error.msg
    except (ValueError, RecursionError) as error:
        return 0, str(error)
    return 0, ""


def _brace_fault(text: str) -> tuple[int, str] | None:
    open_at: list[int] = []
    for found in _JSON_SIGNS.finditer(text):
        sign, at = found[0], found.start()
        if sign in _CLOSING.values():
            open_at.append(at)
        elif sign in _CLOSING:
            if not open_at:
                return at, f"a {sign!r} too many behind {_before(text, at)}: nothing is open there"
            if text[open_at[-1]] != _CLOSING[sign]:
                wanted = next(close for close, opens in _CLOSING.items() if opens == text[open_at[-1]])
                return at, f"{sign!r} stands where {wanted!r} is missing: {_opened(text, open_at[-1])}"
            open_at.pop()
    if open_at:
        wanted = "".join(
            next(close for close, opens in _CLOSING.items() if opens == text[at]) for at in open_at[::-1]
        )
        why = f"{wanted!r} is missing at its end: {_opened(text, open_at[-1])}"
        return len(text), f"{why}; a line that goes on ends in a backslash"
    return None


def _opened(text: str, at: int) -> str:
    return (
        f"the {text[at]!r} behind {_before(text, at)} is not closed"
        if at
        else f"its first {text[at]!r} is not closed"
    )


def _before(text: str, at: int) -> str:
    return repr(text[max(0, at - 30) : at].strip())


def _unfit(why: str) -> ServeError:
    return ServeError(Code.INVALID, f'not JSON like {{"NAME": {{"VERSION": {{"minWorkers": 1}}}}}}: {why}')


def _shown(value: object) -> str:
    return json.dumps(value)[:60]
