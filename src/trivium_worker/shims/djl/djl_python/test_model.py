"""Calls a model's handler without a server: in a test of one's own, or as `python -m djl_python.test_model`.

The settings of `serving.properties` are among the properties of each request here; a server tells them once.
"""

import argparse
import inspect
import logging
import os
import re
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from djl_python.inputs import Input
from djl_python.requests_of_tests import (
    create_concurrent_batch_request,
    create_json_request,
    create_npz_request,
    create_numpy_request,
    create_request,
    create_text_request,
    extract_output_as_bytes,
    extract_output_as_input,
    extract_output_as_npz,
    extract_output_as_numpy,
    extract_output_as_string,
)
from djl_python.service_loader import ModelService, load_model_service
from djl_python.unsupported import stand_in

__all__ = [
    "TestHandler",
    "create_concurrent_batch_request",
    "create_json_request",
    "create_npz_request",
    "create_numpy_request",
    "create_request",
    "create_text_request",
    "extract_output_as_bytes",
    "extract_output_as_input",
    "extract_output_as_npz",
    "extract_output_as_numpy",
    "extract_output_as_string",
    "load_properties",
    "run",
    "update_properties_with_env_vars",
]

create_3p_request = stand_in("djl_python.test_model.create_3p_request")

_OPTION = "option."
_ENTRY = re.compile(r"\s*([^\s=:]+)(?:\s*[=:]\s*|\s+|$)(.*)")
_RANKS = {"SIZE": "WORLD_SIZE", "LOCAL_RANK": "LOCAL_RANK", "RANK": "RANK"}
"""Names behind OMPI_COMM_WORLD_, by which mpirun says which process this is, and the names that handlers read."""


def load_properties(properties_dir: str | None) -> dict[str, str]:
    """Return what a folder's `serving.properties` says, without `option.` in front; nothing without such a file."""
    path = os.path.join(properties_dir or "", "serving.properties")
    if not properties_dir or not os.path.exists(path):
        return {}
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            entry = _ENTRY.match(line.rstrip())
            if entry and entry.group(1)[0] not in "#!":
                key = entry.group(1)
                found[key[len(_OPTION) :] if key.startswith(_OPTION) else key] = entry.group(2)
    return found


def update_properties_with_env_vars(kwargs: dict[str, str]) -> dict[str, str]:
    """Add to these properties what the environment says: HF_MODEL_ID, and OPTION_X as `x`."""
    for name, value in os.environ.items():
        if name == "HF_MODEL_ID":
            kwargs.setdefault("model_id", value)
        if name.startswith("OPTION_"):
            key = name[len("OPTION_") :].lower()
            kwargs.setdefault("entryPoint" if key == "entrypoint" else key, value)
    return kwargs


class TestHandler:
    """A model's module whose functions are called as a server would: a file or module by name, or a module itself."""

    __test__ = False  # pytest would take it for a class of tests

    def __init__(self, entry_point: str | ModuleType, model_dir: str | None = None) -> None:
        for theirs, name in _RANKS.items():
            rank = os.environ.get("OMPI_COMM_WORLD_" + theirs)
            if rank:
                os.environ[name] = rank
        self.serving_properties = update_properties_with_env_vars({})
        self.serving_properties.update(load_properties(model_dir))
        if not isinstance(entry_point, str):
            self.service = ModelService(entry_point, model_dir)
            state = getattr(entry_point, "_service", None)
            if state is not None:
                state.initialized = False  # of a test before this one
            return
        os.chdir(model_dir)  # type: ignore[arg-type] # the handler's files are named from its folder
        root = os.getcwd()
        sys.path.append(root)
        self.service = load_model_service(root, entry_point, "-1")

    def inference(self, inputs: Input) -> Any:
        """Call the handler with a request, and return what it returns."""
        function = inputs.get_function_name() or "handle"
        inputs.properties.update(self.serving_properties)
        return self.service.invoke_handler(function, inputs)

    def inference_batch(
        self,
        inputs: Sequence[Any],
        properties: Sequence[dict[str, Any]] | None = None,
        serving_properties: dict[str, Any] | None = None,
    ) -> Any:
        """Call the handler with a batch, a request per item of `inputs`."""
        return self.inference(create_concurrent_batch_request(inputs, properties, serving_properties))

    def inference_rolling_batch(self, *_: Any, **__: Any) -> Any:
        """Refuse: there is no continuous batching."""
        raise NotImplementedError(
            "TestHandler.inference_rolling_batch is not supported in this version. Test the handler with inference "
            "or inference_batch."
        )


def run() -> None:
    """Call a handler as the command line says, and print what it returns."""
    logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
    given = _parser().parse_args()
    inputs = create_request(given.input, given.parameters)
    inputs.function_name = given.handler
    handler = TestHandler(given.entry_point, given.model_dir)
    for output in _awaited(handler.inference(inputs)):
        sys.stdout.write(f"output: {output}\n")


def _awaited(made: Any) -> Sequence[Any]:
    """Return what a handler gives in the end: one output, or all that an asynchronous one yields."""
    if not (inspect.isawaitable(made) or inspect.isasyncgen(made)):
        return [made]
    import asyncio

    async def wait() -> list[Any]:
        output = await made if inspect.isawaitable(made) else made
        return [piece async for piece in output] if inspect.isasyncgen(output) else [output]

    return asyncio.run(wait())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="djl-test-model", description="Call the handler of a DJL model once."
    )
    parser.add_argument("--model-dir", default=".", help="folder of the model (default: this one)")
    parser.add_argument("--entry-point", default="model.py", help="its file or module (default: model.py)")
    parser.add_argument("--handler", default="handle", help="the function to call (default: handle)")
    parser.add_argument(
        "--input",
        nargs="+",
        default=["input.txt"],
        help="files or texts, each also as key=FILE (default: input.txt)",
    )
    parser.add_argument("--parameters", nargs="+", help="properties of the request, each key=value")
    return parser


if __name__ == "__main__":
    run()
