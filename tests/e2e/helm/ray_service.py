"""Reads what a RayService says of its applications by Ray's own schema, and builds each by its import path, if that is
there. Prints the names of its deployments as Ray has them.
"""

import importlib
import json
import sys
from pathlib import Path

import yaml
from ray.serve.schema import ServeDeploySchema

if __name__ == "__main__":
    text = yaml.safe_load(Path(sys.argv[1]).read_text())["spec"]["serveConfigV2"]
    told = ServeDeploySchema.model_validate(yaml.safe_load(text))
    found = []
    for application in told.applications:
        module, _, name = application.import_path.partition(":")
        names = [each.name for each in application.deployments]
        try:
            built = getattr(importlib.import_module(module), name)(application.args)
        except ModuleNotFoundError:
            built = None  # the other half of this is not in these sources
        found.append([names, None if built is None else built._bound_deployment.name])
    print(json.dumps(found))
