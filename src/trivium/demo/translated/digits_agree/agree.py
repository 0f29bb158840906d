"""A step of a workflow: two models have looked at a picture, and this function holds their answers together."""

import json

from djl_python import Input, Output


def agree(translated: Input, handled: Input) -> Output:
    """Return the digit that the translator's model found, and whether the handler's found the same."""
    best = json.loads(translated.get_as_string())[0]
    digit = json.loads(handled.get_as_string())["digit"]
    answer = {"digit": digit, "probability": best["probability"], "agree": best["className"] == str(digit)}
    return Output().add_as_json(answer).add_property("Content-Type", "application/json")
