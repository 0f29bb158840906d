"""A cluster of Ray on this machine, of several nodes, with Ray Serve's one proxy on the head.

Applications come by a configuration, as `serve deploy` and KubeRay hand it over. Import it only where there is Ray.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import ray
from ray import serve
from ray._raylet import GcsClient
from ray.cluster_utils import Cluster
from ray.serve.context import _get_global_client
from ray.serve.schema import ServeDeploySchema
from tests.harness.ports import free_port
from tests.harness.server_process import until

READY_SECONDS = 240.0
PREEMPTED = 2
"""Why a node is drained: it will go away."""

MARK = "TRIVIUM_TEST_CLUSTER"
"""A variable that everybody who belongs to a cluster of the tests inherits."""


class RayCluster:
    """A head that runs no replicas, and `nodes` others that have room for one each. `port` is the proxy's."""

    def __init__(self, nodes: int) -> None:
        self.port = free_port()
        self._cluster = Cluster(initialize_head=True, head_node_args=_node(cpus=0))
        self.nodes = [self.add_node() for _ in range(nodes)]
        ray.init(address=self._cluster.address, logging_level="error", log_to_driver=False)
        serve.start(proxy_location="HeadOnly", http_options={"host": "0.0.0.0", "port": self.port})

    def add_node(self) -> Any:
        """One more node; a replica goes there."""
        return self._cluster.add_node(**_node(cpus=1))

    def replace(self, node: Any) -> None:
        """Have another node in its place in the list; the old one is not touched."""
        self.nodes[self.nodes.index(node)] = self.add_node()

    def kill(self, node: Any) -> None:
        """End everything of a node at once, as when its machine loses power."""
        for process in psutil.Process(_raylet(node)).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.kill()
        self._cluster.remove_node(node, allow_graceful=False)

    def drain(self, node: Any, seconds: float) -> None:
        """Announce that a node goes away in so many seconds."""
        deadline = int((psutil.time.time() + seconds) * 1000)
        accepted, why = GcsClient(address=self._cluster.address).drain_node(
            node.node_id, PREEMPTED, "a test drains it", deadline
        )
        assert accepted, why

    def deploy(self, *applications: Mapping[str, Any]) -> None:
        """Have exactly these applications; returns at once."""
        _get_global_client().deploy_apps(ServeDeploySchema(applications=list(applications)))

    def await_running(self, application: str, replicas: int) -> None:
        """Wait until an application is up to date, with so many replicas."""
        until(
            lambda: self.is_running(application, replicas),
            lambda: str(serve.status().applications.get(application)),
            READY_SECONDS,
        )

    def is_running(self, application: str, replicas: int) -> bool:
        """Whether an application is up to date, with so many replicas and none that comes or goes."""
        found = serve.status().applications.get(application)
        if found is None or found.status != "RUNNING":
            return False
        states = {name: count for name, count in found.deployments["trivium"].replica_states.items() if count}
        return states == {"RUNNING": replicas}

    def close(self) -> None:
        """End all of it."""
        with contextlib.suppress(Exception):
            serve.shutdown()
        ray.shutdown()
        self._cluster.shutdown()


def _node(cpus: int) -> dict[str, Any]:
    return {
        "num_cpus": cpus,
        "include_dashboard": False,
        "object_store_memory": 80_000_000,
        "dashboard_agent_listen_port": 0,
        "env_vars": {MARK: os.environ[MARK]},
    }


def _raylet(node: Any) -> int:
    (found,) = node.all_processes["raylet"]
    return int(found.process.pid)


def replicas() -> list[psutil.Process]:
    """The processes of replicas that live."""
    return [each for each in family() if any("ServeReplica:" in word for word in _words(each))]


def proxies() -> list[psutil.Process]:
    """The processes of proxies that live."""
    return [each for each in family() if any("ProxyActor" in word for word in _words(each))]


def family() -> list[psutil.Process]:
    """All that lives of the cluster of this test, but for the test itself."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            is_ours = process.environ().get(MARK) == os.environ.get(MARK, "none")
            if is_ours and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _words(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


@contextlib.contextmanager
def ray_cluster(nodes: int) -> Iterator[RayCluster]:
    """A cluster, until the end of the block; nothing of it may be left then."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as folder:
        os.environ.update({MARK: Path(folder).name, "RAY_TMPDIR": folder, "RAY_AUTH_MODE": "disabled"})
        os.environ.pop("RAY_ADDRESS", None)
        cluster = RayCluster(nodes)
        try:
            yield cluster
        finally:
            cluster.close()
            try:
                until(lambda: not family(), lambda: f"left behind: {[_words(each) for each in family()]}")
            finally:
                os.environ.clear()
                os.environ.update(before)
