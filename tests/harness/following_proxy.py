"""A small proxy in front of pods: a connection goes to one that is ready and does not end, as far as it has heard.

It asks readiness as a kubelet does; that a pod ends it hears a while later, as proxies of a cluster do.
"""

import contextlib
import itertools
import socket
import socketserver
import threading
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.harness.kserve_pod import Pod
from tests.harness.server_process import SECONDS

_PERIOD = 0.1
_READ = 65_536


class FollowingProxy:
    """One that runs. `port` is where it listens, `by_pod` how many connections each pod's port got."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self._pods = pods
        self._ending: set[int] = set()
        self._ready: list[int] = []
        self._turns = itertools.count()
        self._is_over = threading.Event()
        self.by_pod: Counter[int] = Counter()
        self.port = 0

    def hear_of_end(self, pod: Pod) -> None:
        """From now on no connection goes there."""
        self._ending.add(pod.http)
        self._ready = [port for port in self._ready if port not in self._ending]

    def follow(self) -> None:
        """Ask the pods for readiness until it is over."""
        while not self._is_over.wait(_PERIOD):
            found = [
                pod.http for pod in self._pods if pod.http not in self._ending and pod.probe("readiness")
            ]
            self._ready = [port for port in found if port not in self._ending]

    def has(self, pod: Pod) -> bool:
        """Whether it is an endpoint."""
        return pod.http in self._ready

    def end(self) -> None:
        """Have `follow` return."""
        self._is_over.set()

    def carry(self, client: socket.socket) -> None:
        """Carry one connection to the next endpoint and back, until both have closed."""
        ports = self._ready
        port = ports[next(self._turns) % len(ports)]
        self.by_pod[port] += 1
        with socket.create_connection(("127.0.0.1", port), SECONDS) as pod:
            back = threading.Thread(target=_pipe, args=(pod, client))
            back.start()
            _pipe(client, pod)
            back.join(SECONDS)


def _pipe(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_READ):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def following(pods: Sequence[Pod]) -> Iterator[FollowingProxy]:
    """A proxy in front of these pods, on a free port."""
    proxy = FollowingProxy(pods)

    class Connection(socketserver.BaseRequestHandler):
        """One client's."""

        def handle(self) -> None:
            proxy.carry(self.request)

    class Listener(socketserver.ThreadingTCPServer):
        """Takes as many at once as come."""

        daemon_threads = True
        request_queue_size = 128

    with Listener(("127.0.0.1", 0), Connection) as listener:
        proxy.port = listener.server_address[1]
        threads = [threading.Thread(target=each) for each in (listener.serve_forever, proxy.follow)]
        for each in threads:
            each.start()
        try:
            yield proxy
        finally:
            proxy.end()
            listener.shutdown()
            for each in threads:
                each.join(SECONDS)
