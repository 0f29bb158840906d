"""Decides how a language model is asked, LMI's own way or OpenAI's, and says what becomes of the runtime it was
written for.

Source: spec sheets `djl`, sections 11.1 and 11.2, and `llm`, "LMI today": since LMI 17 the mode without
`option.rolling_batch` is the asynchronous one, in which requests join and leave as in a rolling batch, too.
"""

from trivium.servers.djl.words.lmi_runtimes import HANDLERS, ROLLING_BATCHES
from trivium.servers.djl.words.lmi_runtimes import VLLM as VLLM_RUNTIME
from trivium.servers.djl.words.settings import DjlSettings, Placed
from trivium.types.spec import Defaults, Origin
from trivium.types.text_engines import VLLM, TextEngine, WeightForm, choose_text_engine

BATCH, ENTRY, ASYNC = "option.rolling_batch", "option.entryPoint", "option.async_mode"
_AUTO = "Write option.rolling_batch=auto in its place."


def is_asynchronous(settings: DjlSettings) -> Placed[bool]:
    """Tell whether requests and answers have OpenAI's form, and which line says so: the mode itself, a handler that
    knows no other, or the absence of all three.
    """
    entry, written = settings.text([ENTRY]), settings.text([ASYNC])
    handler = HANDLERS.get(entry.value)
    if handler is not None and handler.is_async:
        return Placed(True, entry.origin)
    if written.value:
        return settings.switch(ASYNC)
    batch = settings.text([BATCH])
    if batch.value or (handler is not None and not handler.chooses):
        return Placed(False, (batch if batch.value else entry).origin)
    return Placed(True, Origin(f"DJL's default without {BATCH} since LMI 17", ""))


def text_engine(settings: DjlSettings, form: WeightForm, defaults: Defaults) -> TextEngine:
    """Return which engine serves weights of this form: vLLM where a line names it and it is installed; else the one
    that the server's operator named, or that suits the machine.
    """
    asked = VLLM if names_vllm(settings) and defaults.has_vllm else defaults.text_engine
    return choose_text_engine(asked, form, defaults.gpus, defaults.has_vllm)


def names_vllm(settings: DjlSettings) -> bool:
    """Does a line of the folder name vLLM, or the mode in which DJL runs nothing else?"""
    handler = HANDLERS.get(settings.text([ENTRY]).value)
    batch = settings.text([BATCH]).value.lower()
    if handler is not None and not handler.chooses:
        return handler.runtime is VLLM_RUNTIME
    if batch not in ("", "disable"):
        return ROLLING_BATCHES.get(batch) is VLLM_RUNTIME
    return settings.switch(ASYNC).value


def judge_runtime(settings: DjlSettings, mode: Placed[bool], chosen: TextEngine) -> None:
    """Say once which runtime of DJL's the model was written for, and refuse what would not be the same here."""
    batch, entry = settings.text([BATCH]), settings.text([ENTRY])
    handler, word = HANDLERS.get(entry.value), batch.value.lower()
    if word == "disable" and not mode.value:
        found = f"{BATCH}=disable: a .gguf file is not batched statically in this version"
        settings.fault(
            BATCH, found, f"auto, no such line, or {ASYNC}=true", "Write option.rolling_batch=auto."
        )
        return
    runtime, key, text = ROLLING_BATCHES.get(word), BATCH, batch.value
    if handler is not None and not handler.chooses:
        runtime, key, text = handler.runtime, ENTRY, entry.value
    where = "" if chosen.name == VLLM else ", on the CPU or one GPU"
    served = f"the engine {chosen.name} serves the model{where}"
    if chosen.name == VLLM and runtime is VLLM_RUNTIME:
        return  # it is what was asked for
    if runtime is not None and runtime.removed:
        found = f"{key}={text}: {runtime.name} was removed upstream in {runtime.removed}; {served}"
        settings.notice(key, found, _AUTO)
    elif runtime is not None:
        form = ", and is asked in OpenAI's form" if mode.value else ""
        settings.notice(key, f"{key}={text}: {served}{form}, in place of {runtime.name}")
    elif mode.value and mode.origin.key:
        settings.notice(mode.origin.key, f"{ASYNC}=true: {served}, and is asked in OpenAI's form")
    elif mode.value:
        found = f"without {BATCH} the model is asked in OpenAI's form, as DJL does since LMI 17"
        settings.notice("", found, "Write option.rolling_batch=auto for LMI's own form.")
    elif not word:
        settings.notice(
            "", f"without {BATCH} DJL batches statically; here requests join and leave at every step"
        )
