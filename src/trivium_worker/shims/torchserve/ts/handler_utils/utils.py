"""Parts of an answer while the handler still computes, and importing a class by its name.

Source: spec sheet `torchserve`, section 4.4. Who takes the parts has put itself into `context.cl_socket`, where the
original has the socket of its worker.
"""

import importlib
import os
from typing import Any

from ts.unsupported import refusal


def send_intermediate_predict_response(
    ret: list[Any], req_id_map: dict[int, str], message: str, code: int, context: Any = None
) -> None:
    """One part for each request of the batch, in order; what the handler returns is the last one."""
    sender = getattr(context, "cl_socket", None)
    if sender is None:
        raise ValueError(
            "send_intermediate_predict_response: pass the context that the handler got as the last argument"
        )
    sender.send_parts(ret, req_id_map, message, code)


def create_predict_response(*arguments: Any, **named: Any) -> Any:
    """The original's message to its front end, which is not ours."""
    raise refusal(f"{__name__}.create_predict_response")


def import_class(class_name: str, module_prefix: str | None = None) -> Any:
    """The class `module.Class`, or `file.py:Class`, with a package in front of the module if one is given."""
    module_name, separator, name = class_name.rpartition(":")
    if not separator:
        module_name, _, name = class_name.rpartition(".")
    module_name = os.path.basename(module_name[:-3]) if module_name.endswith(".py") else module_name
    module = importlib.import_module(f"{module_prefix}.{module_name}" if module_prefix else module_name)
    return getattr(module, name)
