"""A handler of DJL Serving: counts the words of a text."""

from djl_python import Input, Output


def handle(inputs: Input) -> Output | None:
    """Answer one request. The first call, without content, is the time to load a model."""
    if inputs.is_empty():
        return None
    return Output().add_as_json({"words": len(inputs.get_as_json()["text"].split())})
