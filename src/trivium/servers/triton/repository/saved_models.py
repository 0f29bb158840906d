"""The parameters of Triton's backend `tensorflow`: checked, and as our engine of TensorFlow takes them.

Source: the backend's own documentation. Two of them say who shares a session or its threads, and mean nothing here.
"""

from collections.abc import Iterator, Mapping

from trivium.servers.triton.repository.environments import key_of
from trivium.servers.triton.words.backends import Backend
from trivium.servers.triton.words.config_text import ConfigText
from trivium.types.findings import Finding
from trivium.types.spec import Origin

_BACKEND = "tensorflow"
_THREADS: Mapping[str, str] = {
    "TF_NUM_INTRA_THREADS": "threads",
    "TF_NUM_INTER_THREADS": "inter_op_threads",
}
_OURS: Mapping[str, str] = {
    **_THREADS,
    "TF_GRAPH_TAG": "tags",
    "TF_SIGNATURE_DEF": "signature",
    "TF_INIT_OPS_FILE": "init_ops_file",
}
"""A parameter of the original -> the engine's."""

_SHARES: Mapping[str, tuple[str, ...]] = {
    "TF_USE_PER_SESSION_THREADS": ("true", "on", "1", "yes"),
    "MAX_SESSION_SHARE_COUNT": ("1",),
}
"""Says who shares what -> the words that say what is so here anyway."""
_MOST = 9999


def check(text: ConfigText, backend: Backend) -> Iterator[Finding]:
    """Find what is wrong with the parameters of a model of TensorFlow, and what has no effect."""
    if backend.name != _BACKEND:
        return
    for name in text.config.parameters:
        word = text.config.parameters[name].string_value.strip()
        if name in _THREADS and not (word.isascii() and word.isdigit() and int(word) <= _MOST):
            expected = f"a number from 0 (our own choice: 1) to {_MOST}"
            yield text.fault(key_of(text, name), f"{name} {word[:80]!r}", expected, "Write digits alone.")
        elif name in _SHARES and word.lower() not in _SHARES[name]:
            found = f"{name}: each instance has a session and threads of its own"
            yield text.notice(key_of(text, name), found)


def translated(backend: Backend, parameters: Mapping[str, str]) -> Mapping[str, str]:
    """Return the parameters of a checked model as its engine takes them."""
    if backend.name != _BACKEND:
        return parameters
    unset = [name for name in _THREADS if parameters.get(name, "").strip().strip("0") == ""]
    return {
        _OURS.get(name, name): value.strip()
        for name, value in parameters.items()
        if name not in (*_SHARES, *unset)
    }


def origins(text: ConfigText, backend: Backend) -> dict[str, Origin]:
    """Return where what the engine takes was found."""
    if backend.name != _BACKEND:
        return {}
    keys = {_OURS[name]: key_of(text, name) for name in text.config.parameters if name in _OURS}
    return {f"parameters[{ours}]": Origin(text.file, name, text.line(name)) for ours, name in keys.items()}
