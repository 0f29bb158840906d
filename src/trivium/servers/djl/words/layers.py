"""Lays the settings of a request or an environment over or under those of serving.properties.

Source: spec sheet `djl`, section 2.6: a request or a spec goes before the file, the environment and the server's
defaults behind it; and section 1.4 for the threads of its workers. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from trivium.codecs.java_properties import Properties, PropertyEntry
from trivium.types.sources import ModelSource, SourceSetting
from trivium.types.spec import Origin

_PLAIN = re.compile(r"[A-Z0-9_]+")
_COUNTS = ("minWorkers", "maxWorkers")
VARIABLES: Mapping[str, tuple[str, ...]] = {
    "TENSOR_PARALLEL_DEGREE": ("option.tensor_parallel_degree",),
    "SM_NUM_GPUS": ("option.tensor_parallel_degree",),
    "PIPELINE_PARALLEL_DEGREE": ("option.pipeline_parallel_degree",),
    "HF_TRUST_REMOTE_CODE": ("option.trust_remote_code",),
    "HF_MODEL_TRUST_REMOTE_CODE": ("option.trust_remote_code",),
    "HF_MODEL_QUANTIZE": ("option.quantize",),
    "SAGEMAKER_NUM_MODEL_WORKERS": ("minWorkers", "maxWorkers"),
    "SAGEMAKER_STARTUP_TIMEOUT": ("option.model_loading_timeout",),
    "SAGEMAKER_MODEL_SERVER_TIMEOUT_SECONDS": ("option.predict_timeout",),
    "SERVING_MIN_WORKERS": ("minWorkers",),
    "SERVING_MAX_WORKERS": ("maxWorkers",),
    "SERVING_RETRY_THRESHOLD": ("retry_threshold",),
    "SERVING_JOB_QUEUE_SIZE": ("job_queue_size",),
    "SERVING_BATCH_SIZE": ("batch_size",),
    "SERVING_MAX_BATCH_DELAY": ("max_batch_delay",),
    "SERVING_MAX_IDLE_TIME": ("max_idle_time",),
    "SERVING_LOAD_ON_DEVICES": ("load_on_devices",),
}
"""Variable -> the settings of a model that it is the default of; of two for one setting the first counts."""

_NO_GPUS = ("SM_NUM_GPUS", "0")  # what SageMaker sets on a machine without any

_SYNONYMS = {"entrypoint": "entryPoint"}


def layered(properties: Properties, source: ModelSource, under: Mapping[str, SourceSetting]) -> Properties:
    """Return the properties as they hold for a source: its own wishes, the file's, what the source has under them, and
    `under` as the last.

    A count of workers that is asked for holds on every device.
    """
    wished = {**source.over, **_wishes(source)}
    kept = {
        key: entry
        for key, entry in properties.entries.items()
        if not (key.rpartition(".")[2] in _COUNTS and key.rpartition(".")[2] in wished)
    }
    below = {key: setting for key, setting in {**under, **source.under}.items() if not _is_set(kept, key)}
    entries = {**_entries(below), **kept, **_entries(wished)}
    return replace(properties, entries=entries)


def from_environment(variables: Mapping[str, str]) -> dict[str, SourceSetting]:
    """Return the settings that `OPTION_*` and `ARGS_*` make, and behind them the `VARIABLES`. Names of capitals alone
    are put in lower case.
    """
    found: dict[str, SourceSetting] = {}
    for name, value in variables.items():
        for prefix, key in (("OPTION_", "option."), ("ARGS_", "")):
            rest = name.removeprefix(prefix)
            if not value or not rest or rest == name:
                continue
            word = rest.lower() if _PLAIN.fullmatch(rest) else rest
            word = _SYNONYMS.get(word, word)
            key = "engine" if key and word == "engine" else key + word
            found[key] = SourceSetting(value, Origin("the environment", name))
    for name, keys in VARIABLES.items():
        value = variables.get(name, "").strip()
        if value and (name, value) != _NO_GPUS:
            for key in keys:
                found.setdefault(key, SourceSetting(value, Origin("the environment", name)))
    return found


def threads_of(variables: Mapping[str, str]) -> int:
    """Return OMP_NUM_THREADS as the original's launcher leaves it: 1 where nobody sets it; 0 where it is no number, and
    where NO_OMP_NUM_THREADS forbids to set it.
    """
    text = variables.get("OMP_NUM_THREADS", "").strip()
    if text:
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    return 0 if variables.get("NO_OMP_NUM_THREADS") else 1


def _wishes(source: ModelSource) -> dict[str, SourceSetting]:
    """Return the engine and the devices that a source names, under their keys."""
    origin = Origin(f"the request for {source.uri}", "")
    wishes = {"engine": source.engine, "load_on_devices": ";".join(source.devices)}
    return {key: SourceSetting(value, origin) for key, value in wishes.items() if value}


def _is_set(entries: Mapping[str, PropertyEntry], key: str) -> bool:
    """Tell whether a file decides a key, by itself or by its other spelling."""
    spellings = {key, "max_dynamic_batch_size"} if key == "batch_size" else {key}
    return any(entries[each].value.strip() for each in spellings if each in entries)


def _entries(settings: Mapping[str, SourceSetting]) -> dict[str, PropertyEntry]:
    return {
        key: PropertyEntry(setting.value, setting.origin.line, _place(setting.origin))
        for key, setting in settings.items()
    }


def _place(origin: Origin) -> str:
    return f"{origin.file}, {origin.key}" if origin.key and origin.line is None else origin.file
