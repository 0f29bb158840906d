"""Renders our chart by Helm itself, for the values on standard input, and validates it by Kubernetes' schemas.

Prints, for each set of values, the objects that come of it, or a text: why Helm refuses the values.
"""

import json
import sys

import helm_python
import kubernetes_validate
import yaml

FOREIGN = "monitoring.coreos.com"


def rendered(chart, values):
    try:
        texts = chart.render(values, name="demo", namespace="models")
    except helm_python.HelmError as error:
        return str(error)
    objects = [each for text in texts.values() for each in yaml.safe_load_all(text) if each]
    for each in objects:
        if FOREIGN not in each["apiVersion"]:
            kubernetes_validate.validate(each, "1.34", strict=True)
    return objects


if __name__ == "__main__":
    with helm_python.Chart.load(sys.argv[1]) as opened:
        print(json.dumps([rendered(opened, values) for values in json.load(sys.stdin)]))
