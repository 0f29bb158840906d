"""Triton hands over to the v2 protocol: words for errors, documents of models, the extensions that it lists."""

from trivium.servers.triton.words.description import config_bytes, config_json, platform_of
from trivium.servers.triton.words.http_errors import TritonErrors
from trivium.servers.triton.words.rpc_errors import TritonRpcErrors
from trivium.types.spec import ModelSpec
from trivium.wires.v2.original import V2Original

_EXTENSIONS = (
    "classification",
    "sequence",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "system_shared_memory",
    "cuda_shared_memory",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "trace",
    "logging",
)
"""As Triton lists them (spec sheet `triton`, section 4.2), whether there is a GPU or not."""


class TritonDocuments:
    """Implements `ModelDocuments` by Triton's configuration of a model, which is made where it has none."""

    def platform(self, spec: ModelSpec) -> str:
        """Return the platform of its configuration, or the backend."""
        return platform_of(spec)

    def config_json(self, spec: ModelSpec) -> bytes:
        """Return it as Triton prints it."""
        return config_json(spec)

    def config_bytes(self, spec: ModelSpec) -> bytes:
        """Return it as Triton sends it."""
        return config_bytes(spec)


V2 = V2Original(TritonErrors(), TritonRpcErrors(), TritonDocuments(), _EXTENSIONS)
