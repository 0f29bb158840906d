"""A bare `.onnx` file as a model: named after the file, one version, whatever its tensors are.

Its dims are whole and nothing is batched: whether a first dimension means a batch is its owner's to say.
"""

from dataclasses import replace
from pathlib import Path

from trivium.types.spec import (
    Batching,
    Defaults,
    InstanceGroup,
    Limits,
    ModelFacts,
    ModelSpec,
    Origin,
    Reading,
    TensorSpec,
)

_SUFFIX = ".onnx"
_RULES = {
    "name": "the file's name",
    "version": "rule for a bare file",
    "engine": f"the file's suffix {_SUFFIX}",
    "batching.batch_axis": "rule for a bare file: dims are whole",
    "batching.max_rows": "rule for a bare file: dims are whole",
    "batching.merge": "rule for a bare file: batching is its owner's choice",
    "groups[0].name": "the model's name",
    "groups[0].minimum": "rule for a bare file",
    "groups[0].device": "rule for a bare file",
    "version_policy": "rule for a bare file",
    "limits.queue_items": "the server's default bound",
}


class BareFormat:
    """One file, one model."""

    name = "bare"
    expects = "a file that ends in .onnx"

    def claims(self, path: Path) -> bool:
        """An existing file whose name ends in `.onnx`."""
        try:
            return path.suffix.lower() == _SUFFIX and path.is_file()
        except OSError:
            return False

    def read(self, path: Path, defaults: Defaults) -> Reading:
        """One version, "1". The file itself is opened by the engine alone."""
        origin = {field: Origin(rule, "") for field, rule in _RULES.items()}
        origin |= {field: Origin(str(path), "") for field in ("root", "entry")}
        spec = ModelSpec(
            name=path.stem,
            version="1",
            root=path.parent,
            engine="onnx",
            entry=path.name,
            batching=Batching(),
            groups=(InstanceGroup(path.stem),),
            limits=Limits(queue_items=defaults.queue_items),
            origin=origin,
        )
        return Reading((spec,))

    def finish(self, spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
        """Inputs and outputs as the file declares them."""
        source = Origin(f"the model file {spec.entry}", "")
        origin = {**spec.origin, **_sources("inputs", facts.inputs, source)}
        origin |= _sources("outputs", facts.outputs, source)
        return replace(spec, inputs=facts.inputs, outputs=facts.outputs, origin=origin)


def _sources(field: str, tensors: tuple[TensorSpec, ...], source: Origin) -> dict[str, Origin]:
    parts = ("name", "datatype", "dims")
    return {f"{field}[{i}].{part}": source for i in range(len(tensors)) for part in parts}


FORMAT = BareFormat()
