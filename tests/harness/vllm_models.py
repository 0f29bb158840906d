"""Models that vLLM serves, the real one or a stand-in for it, and the steps of their tests."""

from dataclasses import replace

from tests.harness.language_models import HERE, Steps

from trivium.engines.hf.vllm.engine import ENGINE

WIDE = {"hidden_size": 128}
"""Of a model whose heads are wide enough for vLLM's kernels on a processor."""


class VllmSteps(Steps):
    """An opened model of the engine `vllm`."""

    def opened(self, described):
        return ENGINE.open_steps(vllm_spec(described), HERE, self)


def vllm_spec(described):
    """The spec of the same model for the engine `vllm`, on few threads and with little memory."""
    parameters = {name: text for name, text in described.parameters.items() if name != "threads"}
    return replace(described, engine="vllm", parameters={"kv_bytes": str(2**26), "slots": "8"} | parameters)
