"""The head of a GGUF file: the architecture and context that its metadata names.

Source: the format's description, versions 2 and 3, little-endian. Only the first part of a file is needed: metadata
comes first, and the words of the tokenizer behind what is asked for. Never raises for what somebody wrote. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trivium.codecs.gguf import GgufCut, GgufFault, metadata_of
from trivium.types.findings import Finding, Severity

HEAD_BYTES = 2**20
_NOT_CAUSAL = frozenset(
    {"t5", "t5encoder", "bert", "nomic-bert", "jina-bert-v2", "clip", "whisper", "wavtokenizer-dec"}
)
_AGAIN = "It is cut off, or no such file: copy it anew."


@dataclass(frozen=True, slots=True)
class GgufSummary:
    """Holds what the metadata says as far as the head goes; `context` is 0 where it does not."""

    architecture: str = ""
    context: int = 0
    context_key: str = ""
    name: str = ""
    findings: tuple[Finding, ...] = ()


def read_head(file: str, head: bytes, size: int) -> GgufSummary:
    """Read the first `HEAD_BYTES` of a file of `size` bytes, or all of it."""
    values: dict[str, object] = {}
    try:
        values.update(metadata_of(head))
    except GgufCut as error:
        if len(head) >= size:
            return _refused(file, str(error), _AGAIN)
    except GgufFault as error:
        return _refused(file, str(error), _AGAIN)
    return _head(file, values)


def _head(file: str, values: Mapping[str, object]) -> GgufSummary:
    architecture, name = values.get("general.architecture"), values.get("general.name")
    if not isinstance(architecture, str) or not architecture.isprintable() or not architecture:
        found = "no general.architecture in its metadata"
        return _refused(file, found, "Convert the model anew, with llama.cpp's convert_hf_to_gguf.py.")
    if architecture in _NOT_CAUSAL:
        found = f"general.architecture {architecture}, which is no causal language model"
        return _refused(file, found, "Serve a causal language model, like one of the architecture llama.")
    key = f"{architecture}.context_length"
    context = values.get(key)
    is_given = type(context) is int and 0 < context < 2**31
    return GgufSummary(
        architecture,
        context if is_given and isinstance(context, int) else 0,
        key if is_given else "",
        name if isinstance(name, str) and name.isprintable() else "",
    )


def _refused(file: str, found: str, hint: str) -> GgufSummary:
    expected = "a causal language model in GGUF, version 2 or 3"
    return GgufSummary(findings=(Finding(Severity.ERROR, file, None, "", found[:200], expected, hint),))
