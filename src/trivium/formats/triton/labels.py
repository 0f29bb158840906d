"""The label file of an output: one class per line, in the order of the output's last dimension."""

from dataclasses import replace

from trivium.dialects.triton.config_text import ConfigText
from trivium.formats.triton.folder import ModelFolder
from trivium.types.errors import ConfigError
from trivium.types.findings import Finding
from trivium.types.spec import TensorSpec


def with_labels(
    text: ConfigText, folder: ModelFolder, outputs: tuple[TensorSpec, ...]
) -> tuple[TensorSpec, ...]:
    """The outputs with the labels of their files, which exist. Raises ConfigError where one is not text."""
    labelled, faults = [], list[Finding]()
    for i, (block, output) in enumerate(zip(text.config.output, outputs, strict=True)):
        if block.label_filename:
            path = folder.path / block.label_filename
            try:
                output = replace(output, labels=tuple(path.read_text(encoding="utf-8").splitlines()))
            except UnicodeDecodeError:
                key = f"output[{i}].label_filename"
                faults.append(
                    text.fault(key, f"{path}, which is not UTF-8", "UTF-8 text", "Save it as UTF-8.")
                )
        labelled.append(output)
    if faults:
        raise ConfigError(tuple(faults))
    return tuple(labelled)
