"""Helpers that handlers import: an error with a status, labels of classes, classes of a module.

Source: spec sheet `torchserve`, sections 4.3, 8.1, 8.2 and 8.3.
"""

import inspect
import json
import os
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

_PT2_BACKENDS = frozenset(
    (
        "eager",
        "aot_eager",
        "inductor",
        "nvfuser",
        "aot_nvfuser",
        "aot_cudagraphs",
        "ofi",
        "fx2trt",
        "onnxrt",
        "ipex",
        "torchxla_trace_once",
        "openvino",
        "tensorrt",
        "hpu_backend",
    )
)


class PredictionException(Exception):
    """Raised by a handler: every request of the batch is answered with this text and status."""

    def __init__(self, message: str, error_code: int = 500) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = error_code

    def __str__(self) -> str:
        return f"{self.message} : {self.error_code}"


def list_classes_from_module(module: ModuleType, parent_class: type | None = None) -> list[type]:
    """The classes that a module defines; those that it imports do not count. With a parent only what extends it."""
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__ == module.__name__
    ]
    if parent_class is None:
        return found
    return [value for value in found if issubclass(value, parent_class)]


def load_label_mapping(mapping_file_path: str) -> dict[str, str] | None:
    """index_to_name.json: the label of each class by its number as text; None where there is no such file.

    ValueError for another shape than `{"0": label}`, `{"0": [..., label]}` or `{"object_type_names": [label, ...]}`.
    """
    if not os.path.isfile(mapping_file_path):
        return None
    with open(mapping_file_path, encoding="utf-8") as file:
        mapping = json.load(file)
    if not isinstance(mapping, dict):
        raise ValueError(f"{mapping_file_path}: expected a JSON object of labels by class number")
    if "object_type_names" in mapping:
        names = mapping["object_type_names"]
        if not isinstance(names, list):
            raise ValueError(f"{mapping_file_path}: object_type_names: expected a list of labels")
        return {str(number): str(label) for number, label in enumerate(names)}
    labels = {}
    for number, value in mapping.items():
        label = value[-1] if isinstance(value, list) and value else value
        if not isinstance(label, str):
            raise ValueError(
                f"{mapping_file_path}: {number}: found {value!r}, expected a label or a list that ends with one"
            )
        labels[number] = label
    return labels


def map_class_to_label(
    probs: Sequence[Sequence[float]],
    mapping: dict[str, str] | None = None,
    lbl_classes: Iterable[Sequence[int]] | None = None,
) -> list[dict[str, float]]:
    """Return for each row a dict of probabilities by label. Without classes those of a row are 0, 1, ...; without a
    mapping a class's label is its number.
    """
    if not isinstance(probs, list):
        raise TypeError(f"map_class_to_label: found {type(probs).__name__}, expected a list of rows")
    if mapping is not None and not isinstance(mapping, dict):
        raise TypeError(f"map_class_to_label: the mapping is a {type(mapping).__name__}, expected a dict")
    classes = lbl_classes if lbl_classes is not None else [range(len(row)) for row in probs]
    return [
        {
            (str(one) if mapping is None else mapping[str(one)]): prob
            for one, prob in zip(numbers, row, strict=False)
        }
        for numbers, row in zip(classes, probs, strict=False)
    ]


def get_yaml_config(yaml_file_path: str) -> dict[str, Any]:
    """A YAML file, safely loaded; empty where the file is. ImportError where PyYAML is not installed."""
    import yaml

    with open(yaml_file_path, encoding="utf-8") as file:
        return yaml.safe_load(file) or {}


def check_valid_pt2_backend(backend: str) -> bool:
    """Is this a backend of `torch.compile` that the configuration may name?"""
    return backend in _PT2_BACKENDS
