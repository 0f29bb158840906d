"""The parameters that a backend of Triton takes, as our engine calls them: a row per backend, one reader for all.

What a parameter may be, the engine says. Source: each backend's own documentation of its parameters.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trivium.servers.triton.repository.environments import key_of
from trivium.servers.triton.words.backends import Backend
from trivium.servers.triton.words.config_text import ConfigText
from trivium.types.findings import Finding
from trivium.types.spec import Origin


@dataclass(frozen=True, slots=True)
class Needless:
    """A parameter that changes nothing here. `why` is reported, unless its value is one of those that say what is so
    anyway.
    """

    why: str
    words: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class BackendWords:
    """Maps a backend's parameters to the engine's. A value that is one of `unset`, in lower case, leaves it to that;
    `counts` are numbers.
    """

    ours: Mapping[str, str]
    counts: tuple[str, ...] = ()
    needless: Mapping[str, Needless] = field(default_factory=dict)
    unset: frozenset[str] = frozenset({"", "0"})


MOST = 9999
"""Threads, or runs, that a configuration may ask for."""

_ON = frozenset({"true", "on", "1", "yes"})
_OWN_SESSION = "each instance has a session and threads of its own"
WORDS: Mapping[str, BackendWords] = {
    "tensorflow": BackendWords(
        {
            "TF_NUM_INTRA_THREADS": "threads",
            "TF_NUM_INTER_THREADS": "inter_op_threads",
            "TF_GRAPH_TAG": "tags",
            "TF_SIGNATURE_DEF": "signature",
            "TF_INIT_OPS_FILE": "init_ops_file",
        },
        ("TF_NUM_INTRA_THREADS", "TF_NUM_INTER_THREADS"),
        {
            "TF_USE_PER_SESSION_THREADS": Needless(_OWN_SESSION, _ON),
            "MAX_SESSION_SHARE_COUNT": Needless(_OWN_SESSION, frozenset({"1"})),
        },
    ),
    "vllm": BackendWords(
        {},
        (),
        {
            "REPORT_CUSTOM_METRICS": Needless("what is generated is always counted", _ON),
            "ENABLE_VLLM_HEALTH_CHECK": Needless(
                "a model whose engine dies is loaded again", _ON | {"false"}
            ),
        },
    ),
}
"""Backend -> its words; the parameters of all others are the engine's own, or read by a module of their own."""


def check(text: ConfigText, backend: Backend) -> Iterator[Finding]:
    """Find numbers that are none, and report the parameters that change nothing."""
    words = WORDS.get(backend.name)
    if words is None:
        return
    for name in (one for one in words.counts if one in text.config.parameters):
        value = text.config.parameters[name].string_value.strip()
        is_count = value.isascii() and value.isdigit() and int(value) <= MOST
        if not is_count and (not value or value.lower() not in words.unset):
            others = ", ".join(sorted(words.unset - {"", "0"}))
            expected = f"a number from 0 (our own choice: 1) to {MOST}{f', or {others}' if others else ''}"
            yield text.fault(key_of(text, name), f"{name} {value[:80]!r}", expected, "Write digits alone.")
    for name, row in words.needless.items():
        if name in text.config.parameters:
            value = text.config.parameters[name].string_value.strip().lower()
            if value not in row.words:
                yield text.notice(key_of(text, name), f"{name} changes nothing here: {row.why}")


def translated(backend: Backend, parameters: Mapping[str, str]) -> Mapping[str, str]:
    """Return the parameters of a checked model as its engine takes them."""
    words = WORDS.get(backend.name)
    if words is None:
        return parameters
    return {
        words.ours.get(name, name): value.strip()
        for name, value in parameters.items()
        if name not in words.needless and not (name in words.ours and value.strip().lower() in words.unset)
    }


def origins(text: ConfigText, backend: Backend) -> dict[str, Origin]:
    """Return where what the engine takes was found."""
    words = WORDS.get(backend.name)
    if words is None:
        return {}
    keys = {words.ours[name]: key_of(text, name) for name in text.config.parameters if name in words.ours}
    return {f"parameters[{ours}]": Origin(text.file, name, text.line(name)) for ours, name in keys.items()}
