"""Words the faults of a configuration as Triton does, for clients that ask for a load (sheet "triton", 2.5).

Finds them by the key that a finding is about. Whether a fault is met while the repository is polled or while the model
is loaded decides what clients are told of it. Pure; what has no row keeps the sentence that it has.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from trivium.servers.triton.words.config_text import ConfigText
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.findings import Finding, Severity
from trivium.wires.v2 import request_reasons


class About(NamedTuple):
    """The place of a finding: in the configuration of `model`, at the key that `place` was found in."""

    text: ConfigText
    model: str
    finding: Finding
    place: Mapping[str, str]


Form = Callable[[About], str]
_INVALID, _INTERNAL = "Invalid argument: ", "Internal: "


def in_tritons_words(
    text: ConfigText, model: str, version: str, findings: Sequence[Finding]
) -> list[Finding]:
    """Return the findings, errors with the facts that a client of Triton reads. `version` is the one that
    would have been loaded.
    """
    # Of a file that cannot be read whole, the keys may number other blocks than the message has.
    return [
        replace(finding, info=_fault(About(text, model, finding, {}), version, text.has_errors))
        if finding.severity is Severity.ERROR and finding.info is None
        else finding
        for finding in findings
    ]


def _fault(about: About, version: str, is_unread: bool) -> ErrorInfo:
    for pattern, form in () if is_unread else _POLLED:
        found = pattern.fullmatch(about.finding.key)
        if found:
            words = form(about._replace(place=found.groupdict()))
            return ErrorInfo.of(request_reasons.UNREADABLE, model=about.model, text=words)
    if _NO_VERSION.fullmatch(about.finding.key):
        return ErrorInfo.of(request_reasons.NO_VERSION, model=about.model)
    if is_unread:
        return ErrorInfo.of(request_reasons.UNREADABLE, model=about.model, text=str(about.finding))
    told = _INVALID + str(about.finding)
    for pattern, form in _LOADED:
        found = pattern.fullmatch(about.finding.key)
        words = form(about._replace(place=found.groupdict())) if found else ""
        if words:
            told = words
            break
    return ErrorInfo.of(reasons.NOT_LOADED, model=about.model, version=version, text=told)


def _tensor(about: About) -> str:
    section, at = about.place["section"], int(about.place["at"])
    return f"model {section} '{getattr(about.text.config, section)[at].name}'"


def _lacks(name: str) -> Form:
    def form(about: About) -> str:
        is_there = not about.finding.found.startswith("no ")
        return "" if is_there else f"{_INVALID}{_tensor(about)} must specify '{name}' for {about.model}"

    return form


def _nameless(about: About) -> str:
    if not about.finding.found.startswith("no "):
        return ""
    return f"{_INVALID}model {about.place['section']} must specify 'name' for {about.model}"


def _size(what: str) -> Form:
    ending = "must be integer >= 1, or -1 to indicate a variable-size dimension for"
    return lambda about: f"{_INVALID}{_tensor(about)} {what} {ending} {about.model}"


def _picture(about: About) -> str:
    return f"{_INVALID}model input NHWC/NCHW require 3 dims for {about.model}"


def _reshape(about: About) -> str:
    tensor = getattr(about.text.config, about.place["section"])[int(about.place["at"])]
    if any(size < 1 and size != -1 for size in tensor.reshape.shape):
        return _size("reshape dimensions")(about)
    return f"{_INVALID}{_tensor(about)} has different size for dims and reshape for {about.model}"


def _group(about: About) -> str:
    at = int(about.place["at"])
    group = about.text.config.instance_group[at]
    return f"{_INVALID}instance group {group.name or f'{about.model}_{at}'} of model {about.model}"


def _device(about: About) -> str:
    what = about.place["what"]
    if what == "kind":
        return f"{_group(about)} has kind KIND_GPU but no GPUs are available"
    if what == "gpus":
        return f"{_group(about)} has kind KIND_CPU but specifies one or more GPUs"
    return ""


def _cache(about: About) -> str:
    _, _, reason = about.finding.found.partition(" with ")
    text = f"Response Cache does not currently support model {about.model} with {reason}"
    return f"{_INVALID}{text}. Please disable the response cache."


def _labels(about: About) -> str:
    name = about.text.config.output[int(about.place["at"])].label_filename
    path = Path(about.text.file).parent / name
    return f"{_INTERNAL}failed to open text file for read {path}: No such file or directory"


def _environment(about: About) -> str:
    path, _, rest = about.finding.found.partition(", which is not there")
    return (
        ""
        if rest or path == about.finding.found
        else f"{_INTERNAL}Failed to get the canonical path for {path}."
    )


def _platform(about: About) -> str:
    config = about.text.config
    if config.backend:
        return f"unexpected 'platform' and 'backend' pair, got:{config.platform}, {config.backend}"
    return f"unexpected platform type '{config.platform}' for {about.model}"


def _preferred(about: About) -> str:
    size = about.text.config.dynamic_batching.preferred_batch_size[int(about.place["at"])]
    bound = "be <= max batch size" if size > 0 else "be positive"
    return f"dynamic batching preferred size must {bound} for {about.model}"


def _level(what: str) -> Form:
    def form(about: About) -> str:
        levels = about.text.config.dynamic_batching.priority_levels
        return f"{what} in range [1, {levels}] for {about.model}"

    return form


_NO_VERSION = re.compile(r"|version_policy\.specific\.versions\[\d+\]")
"""A folder without versions has a finding of its own, at no key."""
_TENSOR = r"(?P<section>input|output)\[(?P<at>\d+)\]"
_POLLED: Sequence[tuple[re.Pattern[str], Form]] = [
    (re.compile(pattern), form)
    for pattern, form in (
        (
            r"name",
            lambda about: (
                f"unexpected directory name '{about.model}' for model '{about.text.config.name}', "
                "directory name must equal model name"
            ),
        ),
        (r"platform", _platform),
        (r"max_batch_size", lambda about: f"'max_batch_size' must be non-negative value for {about.model}"),
        (r"dynamic_batching\.preferred_batch_size\[(?P<at>\d+)\]", _preferred),
        (r"dynamic_batching\.default_priority_level", _level("default priority level must be")),
        (
            r"dynamic_batching\.priority_queue_policy.*",
            _level("priority queue policy must have priority level"),
        ),
        (r"ensemble_scheduling.*", lambda about: str(about.finding)),
    )
]
_LOADED: Sequence[tuple[re.Pattern[str], Form]] = [
    (re.compile(pattern), form)
    for pattern, form in (
        (_TENSOR + r"\.name", _nameless),
        (_TENSOR + r"\.data_type", _lacks("data_type")),
        (_TENSOR + r"\.dims", _lacks("dims")),
        (_TENSOR + r"\.format", _picture),
        (_TENSOR + r"\.dims\[\d+\]", _size("dimension")),
        (_TENSOR + r"\.reshape\.shape", _reshape),
        (
            _TENSOR + r"\.is_shape_tensor",
            lambda about: (
                f"{_INVALID}shape tensors are only supported for TensorRT platform for {about.model}"
            ),
        ),
        (r"instance_group\[(?P<at>\d+)\]\.(?P<what>kind|gpus)", _device),
        (r"response_cache\.enable", _cache),
        (r"output\[(?P<at>\d+)\]\.label_filename", _labels),
        (r"parameters\[\d+\]\.value\.string_value", _environment),
    )
]
