"""The label file of an output: one class per line, in the order of the output's last dimension."""

from dataclasses import replace
from pathlib import Path

from trivium.files import open_file
from trivium.servers.triton.words.config_text import ConfigText
from trivium.types.errors import ConfigError
from trivium.types.findings import Finding
from trivium.types.spec import TensorSpec


def with_labels(text: ConfigText, folder: Path, outputs: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    """The outputs with the labels of their files, which exist in the model's folder. Raises ConfigError where one is
    not text.
    """
    labels, faults = dict[str, tuple[str, ...]](), list[Finding]()
    for i, block in enumerate(text.config.output):
        if block.label_filename:
            path = folder / block.label_filename
            try:
                with open_file(path) as file:
                    labels[block.name] = tuple(file.read().decode().splitlines())
            except UnicodeDecodeError:
                key = f"output[{i}].label_filename"
                faults.append(
                    text.fault(key, f"{path}, which is not UTF-8", "UTF-8 text", "Save it as UTF-8.")
                )
    if faults:
        raise ConfigError(tuple(faults))
    return tuple(replace(output, labels=labels.get(output.name, ())) for output in outputs)
