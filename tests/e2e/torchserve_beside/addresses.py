"""The five addresses of a server, and the lines of a configuration that say them."""

from dataclasses import dataclass

from tests.harness.ports import free_port


@dataclass(frozen=True)
class Addresses:
    """Ports of this machine's loopback address."""

    inference: int
    management: int
    metrics: int
    grpc_inference: int
    grpc_management: int
    workers: int

    def port(self, listener: str) -> int:
        """The port of the listener of that name."""
        return int(getattr(self, listener))

    def properties(self) -> str:
        """The lines that make a server listen there."""
        https = "".join(
            f"{name}_address=http://127.0.0.1:{self.port(name)}\n"
            for name in ("inference", "management", "metrics")
        )
        return (
            f"{https}grpc_inference_port={self.grpc_inference}\ngrpc_management_port={self.grpc_management}\n"
            f"initial_worker_port={self.workers}\n"
        )


def free_addresses() -> Addresses:
    """Find ports that nobody has."""
    return Addresses(*(free_port() for _ in range(6)))
