"""Options of DJL folders whose model vLLM serves: each as vLLM's argument, as LMI passes it on.

Source: spec sheet `llm`, "Option map". What an argument may be, the engine says. Errors gather in the settings.
"""

from collections.abc import Mapping

from trivium.servers.djl.words.settings import DjlSettings, Placed
from trivium.servers.djl.words.vllm_options import INVERTED, TENSOR, argument_of

_EVERY = "max"
_BITS = {"option.load_in_8bit": "bitsandbytes8", "option.load_in_4bit": "bitsandbytes4"}


def vllm_parameters(settings: DjlSettings, gpus: int) -> Mapping[str, Placed[str]]:
    """Return the parameters, of all options that are vLLM's; those of two spellings may not contradict each other."""
    found: dict[str, Placed[str]] = {}
    for key in settings.properties.entries:
        written = settings.text([key])
        name = argument_of(key)
        if not written.value:
            continue
        if key in INVERTED:
            word = str(not settings.switch(key).value).lower()
            name, written = INVERTED[key], Placed(word, written.origin)
        elif key in _BITS and settings.switch(key).value:
            name, written = "quantization", Placed(_BITS[key], written.origin)
        if not name:
            continue
        if key == TENSOR and written.value.lower() == _EVERY:
            written = Placed(str(max(gpus, 1)), written.origin)
        before = found.get(name)
        if before is not None and before.value != written.value:
            both = f"{before.origin.key}={before.value[:80]} and {key}={written.value[:80]}"
            settings.fault(key, both, f"one value: both are vLLM's {name}", "Remove one of the two.")
        found[name] = written
    return found
