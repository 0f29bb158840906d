"""Reads YAML of KServe's objects by its SDK's models, and prints each key and value that they do not have."""

import re
import sys
from pathlib import Path

import yaml
from kserve import models
from kubernetes import client

KINDS = {
    "ClusterServingRuntime": "V1alpha1ClusterServingRuntime",
    "ServingRuntime": "V1alpha1ServingRuntime",
    "InferenceService": "V1beta1InferenceService",
}
PLAIN = {"str": str, "int": int, "bool": bool, "float": float}


def faults(data, kind, place):
    """Each thing of these data that is none of that type's."""
    listed = re.fullmatch(r"list\[(.*)\]", kind)
    mapped = re.fullmatch(r"dict[(\[]str, (.*)[)\]]", kind)
    if listed:
        for at, one in enumerate(data):
            yield from faults(one, listed[1], f"{place}[{at}]")
    elif mapped:
        for key, one in data.items():
            yield from faults(one, mapped[1], f"{place}.{key}")
    elif kind in PLAIN:
        if not isinstance(data, PLAIN[kind]):
            yield f"{place}: {data!r} is no {kind}"
    elif model := getattr(models, kind, None) or getattr(client, kind, None):
        yield from of_model(data, model, place)


def of_model(data, model, place):
    fields = {shown: name for name, shown in model.attribute_map.items()}
    for key, value in data.items():
        if key not in fields:
            yield f"{place}.{key} is unknown"
        else:
            yield from faults(value, model.openapi_types[fields[key]], f"{place}.{key}")
    model(
        **{fields[key]: value for key, value in data.items() if key in fields}
    )  # raises for what is not there


if __name__ == "__main__":
    count = 0
    for file in sys.argv[1:]:
        for each in yaml.safe_load_all(Path(file).read_text()):
            count += 1
            for fault in faults(each, KINDS[each["kind"]], each["metadata"]["name"]):
                print(fault)
    print(count)
