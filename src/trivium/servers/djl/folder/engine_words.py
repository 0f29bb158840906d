"""Options of DJL folders whose values are words of other runtimes, and the engine's words for them.

Source: spec sheet `djl`, section 11.1. Errors gather in the settings.
"""

from collections.abc import Mapping
from typing import NamedTuple

from trivium.servers.djl.words.formatters import FORMATTERS
from trivium.servers.djl.words.settings import DjlSettings, Placed

_DTYPES = {
    **dict.fromkeys(("auto",), "auto"),
    **dict.fromkeys(("fp32", "float32", "float"), "fp32"),
    **dict.fromkeys(("fp16", "float16", "half"), "fp16"),
    **dict.fromkeys(("bf16", "bfloat16"), "bf16"),
}


class _Words(NamedTuple):
    """Says which parameter of the engine an option becomes, and by which word."""

    parameter: str
    ours: Mapping[str, str]
    expected: str
    hint: str = "Write one of them, or remove the line."


_QUANTISED = _Words(
    "quantize",
    {
        **{word: word for word in ("bitsandbytes8", "bitsandbytes4", "dynamic_int8")},
        "bitsandbytes": "bitsandbytes4",
    },
    "bitsandbytes8, bitsandbytes4 or dynamic_int8",
    "Write one of them, or remove the line; a .gguf file, and weights that are quantised already, need none.",
)


WORDS: Mapping[str, _Words] = {
    "option.dtype": _Words(
        "dtype",
        _DTYPES,
        "auto, fp32, fp16 or bf16",
        "Write one of them; bf16 and fp16 take half the memory of fp32.",
    ),
    **dict.fromkeys(("option.quantize", "option.quantization"), _QUANTISED),
    "option.load_in_8bit": _Words("quantize", {"true": "bitsandbytes8", "false": "none"}, "true or false"),
    "option.load_in_4bit": _Words("quantize", {"true": "bitsandbytes4", "false": "none"}, "true or false"),
    "option.output_formatter": _Words(
        "output_formatter",
        dict(zip(FORMATTERS, FORMATTERS, strict=True)),
        f"one of {', '.join(FORMATTERS)}, or a function of model.py",
    ),
    "option.enable_prefix_caching": _Words(
        "prefix_cache",
        {"true": "true", "false": "false"},
        "true or false",
        "Write one of them: false keeps nothing of requests that have ended.",
    ),
    "option.generation_config": _Words(
        "generation_config",
        {"auto": "auto", "vllm": "none"},
        "auto, or vllm for none",
        "Write one of them: the file is the one beside the weights.",
    ),
}
"""Option -> what it becomes."""


def word_of(settings: DjlSettings, key: str) -> Placed[str] | None:
    """Return our word for the one that is written; a fault, and None, for one that has none."""
    words, written = WORDS[key], settings.text([key])
    found = words.ours.get(written.value.lower())
    if written.value and found is None:
        settings.fault(key, f"{key}={written.value[:80]}", words.expected, words.hint)
    return None if found is None else Placed(found, written.origin)
