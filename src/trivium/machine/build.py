"""Tells what this server is made of: its own version, Python's, and those of the libraries that engines run on."""

import platform
from collections.abc import Mapping
from functools import cache
from importlib import metadata

_ENGINES = (
    "onnxruntime",
    "onnxruntime-gpu",
    "torch",
    "transformers",
    "vllm",
    "openvino",
    "openvino-genai",
    "scikit-learn",
    "xgboost",
    "xgboost-cpu",
    "lightgbm",
    "paddlepaddle",
    "tensorflow",
    "tensorflow-cpu",
)
"""Distributions, as registries call them."""


@cache
def build_facts() -> Mapping[str, str]:
    """Return facts by name: `version`, `python`, and `engines`, which lists libraries with their versions. Imports
    none of them; reads files, for milliseconds, once.
    """
    found = ((name, _version(name)) for name in _ENGINES)
    return {
        "version": _version("trivium"),
        "python": platform.python_version(),
        "engines": ",".join(f"{name}={version}" for name, version in found if version),
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
