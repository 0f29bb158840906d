"""Finds in a model.py what belongs to DJL's own services of language models: by the text, which is parsed and not run.

Source: spec sheet `djl`, sections 8.3 and 11.6. Pure.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trivium.servers.djl.words.handlers import parsed

_PACKAGE = "djl_python"
_SERVE = (
    "Keep what it changes of requests and answers as functions @input_formatter and @output_formatter in model.py, "
    "without the class and handle: option.rolling_batch=auto serves the weights with them around it. Or load the model "
    "in model.py by its own library, and write handle(inputs) with Input and Output."
)
_WITHOUT = "Write the handler without it, with Input and Output."
SERVICES: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "deepspeed",
            "huggingface",
            "lmi_trtllm",
            "lmi_trtllm.trtllm_async_service",
            "lmi_vllm",
            "lmi_vllm.vllm_async_service",
            "tensorrt_llm",
            "transformers_neuronx",
        ),
        _SERVE,
    ),
    **dict.fromkeys(
        (
            "adapter_formatter_mixin",
            "adapter_manager_mixin",
            "async_utils",
            "chat_completions",
            "custom_handler_service",
            "properties_manager",
            "sagemaker",
            "stable_diffusion",
            "streaming_utils",
            "utils",
            "xgboost_handler",
        ),
        _WITHOUT,
    ),
}
"""Modules of `djl_python` whose names stand for nothing here -> what to do instead."""

FORMATTERS = ("input_formatter", "output_formatter", "prediction_handler", "init_handler")
"""Decorators by which DJL finds functions around its own engines."""

AROUND = FORMATTERS[:2]
"""Those among them that are around one for language models."""


@dataclass(frozen=True, slots=True)
class ServiceUse:
    """A class or function of DJL's own services that the module needs as it is loaded: `name` with its module, in which
    `line`, what to do instead; `subclass` is the class that builds on it, empty for a call.
    """

    name: str
    line: int
    way_out: str
    subclass: str = ""


def services_of(text: str) -> tuple[ServiceUse, ...]:
    """Return the uses in this module; none of one that cannot be parsed."""
    module = parsed(text)
    if module is None:
        return ()
    known = dict(_imported(module))
    return tuple(use for node in module.body for use in _uses(node, known))


def formatters_of(text: str) -> Mapping[str, tuple[str, int]]:
    """Return the functions at the top that are decorated for DJL's engine: by which decorator, in which line."""
    module = parsed(text)
    found: dict[str, tuple[str, int]] = {}
    for node in module.body if module is not None else ():
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for decorator in node.decorator_list:
            name = decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
            if name in FORMATTERS:
                found[node.name] = (name, node.lineno)
    return found


def _imported(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each name that stands for something of DJL's services, with its full name."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            source = node.module.removeprefix(_PACKAGE).removeprefix(".")
            if node.module.partition(".")[0] == _PACKAGE:
                for alias in node.names:
                    inner = f"{source}.{alias.name}".removeprefix(".")
                    if source in SERVICES or inner in SERVICES:
                        yield alias.asname or alias.name, f"{_PACKAGE}.{inner}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.removeprefix(f"{_PACKAGE}.") in SERVICES:
                    yield alias.asname or alias.name, alias.name


def _uses(node: ast.stmt, known: Mapping[str, str]) -> Iterator[ServiceUse]:
    if isinstance(node, ast.ClassDef):
        for base in node.bases:
            if name := _full(base, known):
                yield ServiceUse(name, node.lineno, _way_out(name), node.name)
        return
    call = node.value if isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr) else None
    if isinstance(call, ast.Call) and (name := _full(call.func, known)):
        yield ServiceUse(name, node.lineno, _way_out(name))


def _full(node: ast.expr, known: Mapping[str, str]) -> str:
    """Return the full name of what an expression names, if it is one of the known; empty else."""
    written = ast.unparse(node)
    for name, full in known.items():
        if written == name or written.startswith(f"{name}."):
            return full + written.removeprefix(name)
    return ""


def _way_out(name: str) -> str:
    inner = name.removeprefix(f"{_PACKAGE}.")
    return next((SERVICES[module] for module in SERVICES if inner.startswith(f"{module}.")), _WITHOUT)
