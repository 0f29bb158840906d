"""Specs of language models that OpenVINO GenAI serves."""

from dataclasses import replace

from tests.harness.language_models import spec

from trivium.types.spec import InstanceGroup, Isolation


def described(place, **parameters):
    """The spec of a model that this engine serves in a process, computing in 32 bits."""
    group = InstanceGroup("m", 1, 1, isolation=Isolation.PROCESS)
    told = {"precision": "exact", **parameters}
    return replace(spec(place, **told), engine="openvino-llm", groups=(group,), streams=True)
