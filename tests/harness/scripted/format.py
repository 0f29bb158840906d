"""The format `script`: a folder with a script.json, whose `parameters` are those of the model."""

import json
from pathlib import Path

from trivium.codecs.generation import INPUTS, OUTPUTS
from trivium.types.spec import Defaults, InstanceGroup, Limits, ModelFacts, ModelSpec, ReadResult

SCRIPT = "script.json"


class ScriptFormat:
    """Implements `Format`."""

    name = "script"
    expects = f"a folder with a {SCRIPT}"

    def claims(self, path: Path) -> bool:
        """Is there a script in the folder?"""
        return (path / SCRIPT).is_file()

    def read(self, path: Path, defaults: Defaults) -> ReadResult:
        """Return the one version that the folder holds."""
        told = json.loads((path / SCRIPT).read_text())
        spec = ModelSpec(
            name=path.name,
            version="1",
            root=path,
            engine="scripted",
            entry=SCRIPT,
            groups=(InstanceGroup(path.name),),
            inputs=INPUTS,
            outputs=OUTPUTS,
            limits=Limits(queue_items=told.get("queue", defaults.queue_items)),
            parameters=told.get("parameters", {}),
        )
        return ReadResult((spec,))

    def finish(self, spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
        """Return the spec as it is."""
        return spec


FORMAT = ScriptFormat()
