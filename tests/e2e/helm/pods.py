"""Validates the pod templates inside objects that Kubernetes itself has no schema for, such as a RayService: each is a
pod of its own. Prints how many there were.
"""

import sys
from pathlib import Path

import kubernetes_validate
import yaml


def templates(found):
    """Every pod template below an object."""
    if isinstance(found, dict):
        if isinstance(found.get("template"), dict) and "spec" in found["template"]:
            yield found["template"]
        for each in found.values():
            yield from templates(each)
    elif isinstance(found, list):
        for each in found:
            yield from templates(each)


if __name__ == "__main__":
    count = 0
    for document in yaml.safe_load_all(Path(sys.argv[1]).read_text()):
        for template in templates(document):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "made"}, **template}
            kubernetes_validate.validate(pod, "1.34", strict=True)
            count += 1
    print(count)
