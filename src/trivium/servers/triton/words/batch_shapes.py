"""Checks `batch_input` and `batch_output`, and finds those without effect (sheet "triton", 3.1). Pure."""

from collections.abc import Collection, Iterator, Sequence

from trivium.servers.triton.words.backends import Backend
from trivium.servers.triton.words.config_text import ConfigText
from trivium.types.findings import Change, Finding
from trivium.wires.v2.schema import ENUMS

_NUMBERS = ("TYPE_FP32", "TYPE_INT32")


def check_batch_shapes(text: ConfigText, backend: Backend) -> Iterator[Finding]:
    """Can they be made by the backend's engine, of inputs that there are?"""
    config = text.config
    for section, count in (
        ("batch_input", len(config.batch_input)),
        ("batch_output", len(config.batch_output)),
    ):
        if count and not backend.tells_shapes:
            found = (
                f"{section} with the backend {backend.name}, which gets its requests one by one: no effect"
            )
            yield text.notice(f"{section}[0]", found)
    if not backend.tells_shapes:
        return
    inputs = {tensor.name for tensor in config.input}
    outputs = {tensor.name for tensor in config.output}
    for i, told in enumerate(config.batch_input):
        key = f"batch_input[{i}]"
        yield from _ends(text, key, told.source_input, inputs)
        if told.data_type not in [ENUMS["DataType"][name] for name in _NUMBERS]:
            hint = "Write data_type: TYPE_INT32."
            expected, change = " or ".join(_NUMBERS), Change(value="TYPE_INT32")
            yield text.fault(f"{key}.data_type", "another data type", expected, hint, change)
        for name in inputs.intersection(told.target_name):
            hint = "Remove the input: clients do not send it."
            yield text.fault(
                f"{key}.target_name", f"{name}, which is an input of clients, too", "another", hint
            )
    for i, following in enumerate(config.batch_output):
        key = f"batch_output[{i}]"
        yield from _ends(text, key, following.source_input, inputs)
        for name in set(following.target_name) - outputs if outputs else ():
            expected = f"one of {', '.join(sorted(outputs))}"
            yield text.fault(f"{key}.target_name", f"the output {name}", expected, "Correct the name.")
    if (len(config.batch_input) or len(config.batch_output)) and config.max_batch_size == 0:
        key = "batch_input[0]" if len(config.batch_input) else "batch_output[0]"
        hint = "Write max_batch_size: 1 or more."
        yield text.fault(key, "a model without a batch dimension", "max_batch_size", hint)


def _ends(text: ConfigText, key: str, sources: Sequence[str], inputs: Collection[str]) -> Iterator[Finding]:
    if len(sources) != 1:
        found = f"{len(sources)} source inputs"
        yield text.fault(f"{key}.source_input", found, "just one", "Name the input that is meant.")
    for source in sources:
        if source not in inputs:
            expected = f"one of {', '.join(sorted(inputs)) or 'the inputs, of which none is written'}"
            yield text.fault(f"{key}.source_input", f"the input {source}", expected, "Correct the name.")
