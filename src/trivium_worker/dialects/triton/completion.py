"""`auto_complete_config` of a Triton model, run before any instance is made. Sheet "triton", sections 2.4 and 8.1.

Decides what a return value must be; what of the configuration may change, the server decides. Needs numpy, as pb_utils
does.
"""

import json
from typing import Any

from trivium_worker.dialects.triton.handler import check_numpy
from trivium_worker.dialects.triton.loading import load_module
from trivium_worker.dialects.triton.texts import reported
from trivium_worker.runtime.adapter import Host, Setup
from trivium_worker.wire.values import Failure


def complete(setup: Setup, host: Host) -> dict[str, Any]:
    """The configuration as the model leaves it, or as it is for one that has no such method. Raises Failure with what
    user code raised, or where it returned something else.
    """
    check_numpy()
    from c_python_backend_utils.backend import BACKEND
    from c_python_backend_utils.model_config import ModelConfig

    text = setup.settings["model_config"]
    BACKEND.start(host, setup.instance, setup.root, json.loads(text))
    try:
        model = load_module(setup.root, setup.entry, setup.version).TritonPythonModel
        function = getattr(model, "auto_complete_config", None)
        completed = ModelConfig(text) if function is None else function(ModelConfig(text))
    except Failure:
        raise
    except Exception as error:
        raise Failure(reported(error).message, "load failed") from error
    if not isinstance(completed, ModelConfig):
        raise Failure(
            f"auto_complete_config function in model '{setup.model}' must return a valid pb.ModelConfig object.",
            "load failed",
        )
    return completed.as_dict()
