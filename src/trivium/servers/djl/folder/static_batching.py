"""Options of DJL folders whose model of texts is batched statically: the task, how many requests share a call, streams.

Source: spec sheet `djl`, sections 11.1 and 11.2. Errors gather in the settings.
"""

from collections.abc import Mapping

from trivium.formats.checkpoint.checkpoint import CheckpointReading
from trivium.servers.djl.folder.engine_words import word_of
from trivium.servers.djl.words.settings import DjlSettings, Placed
from trivium.types.model_tasks import NAMES, WRITTEN, ModelTask, task_named
from trivium.types.spec import Origin

_TASKS = ("option.task", "task")
_BATCH, _TRUST, _DTYPE = "option.rolling_batch", "option.trust_remote_code", "option.dtype"
_STREAMING, _INPUT = "option.enable_streaming", "option.max_input_len"
_STREAMS = {"": "false", "false": "false", "true": "true", "huggingface": "huggingface"}
_OPEN = ("", "auto", "generate")


def task_asked(settings: DjlSettings) -> Placed[ModelTask | None]:
    """Return the task that is written down; None where the model is to tell it."""
    written = settings.text(_TASKS)
    if written.value.strip().lower() in _OPEN:
        return Placed(None, written.origin)
    task = task_named(written.value)
    if task is None:
        key = written.origin.key or _TASKS[0]
        found = f"{key}={written.value[:80]}, a task that is not served"
        settings.fault(key, found, f"one of {', '.join(NAMES)}", "Write one of them, or remove the line.")
    return Placed(task, written.origin)


def judge_static(settings: DjlSettings, made: CheckpointReading) -> None:
    """Find what of a folder's options does not go with static batches."""
    batch = settings.text([_BATCH])
    if batch.value.lower() not in ("", "disable", "trtllm"):
        found = f"{_BATCH}={batch.value} has no effect: a model for {made.task.value} is batched statically"
        settings.notice(_BATCH, found, "Write disable, and batch_size for how many requests share a call.")
    streaming = settings.text([_STREAMING])
    if streaming.value.lower() not in _STREAMS:
        found = f"{_STREAMING}={streaming.value[:80]}"
        settings.fault(_STREAMING, found, "false, true or huggingface", "Write one of them.")
    elif _STREAMS[streaming.value.lower()] != "false" and made.task not in WRITTEN:
        found = (
            f"{_STREAMING}={streaming.value} has no effect: an answer to {made.task.value} is there at once"
        )
        settings.notice(_STREAMING, found)
    elif _STREAMS[streaming.value.lower()] != "false":
        size = settings.number(("batch_size", "max_dynamic_batch_size"), 1)
        if size.value > 1:
            found = f"{_STREAMING}={streaming.value} with {size.origin.key}={size.value}"
            hint = "Remove one of the two: what is streamed is computed alone."
            settings.fault(_STREAMING, found, "a batch_size of 1", hint)


def static_parameters(
    settings: DjlSettings, made: CheckpointReading, asked: Placed[ModelTask | None]
) -> Mapping[str, Placed[str]]:
    """Return what the options say to the engine. The task keeps the spelling under which config.json may have its
    settings (`translation_en_to_de`).
    """
    told = made.origins.get("architecture", Origin(made.entry, "architectures"))
    task = Placed(made.task.value, told) if asked.value is None else settings.text(_TASKS)
    found: dict[str, Placed[str]] = {"task": task}
    if made.task in WRITTEN:
        streaming = settings.text([_STREAMING])
        found["enable_streaming"] = Placed(_STREAMS.get(streaming.value.lower(), "false"), streaming.origin)
    if (most := settings.number([_INPUT], 0)).value > 1:
        found["max_input_tokens"] = Placed(str(most.value), most.origin)
    if settings.text([_TRUST]).value:
        switch = settings.switch(_TRUST)
        found["trust_remote_code"] = Placed(str(switch.value).lower(), switch.origin)
    if (dtype := word_of(settings, _DTYPE)) is not None:
        found["dtype"] = dtype
    return found
