"""Sessions of a DJL handler over the real server: two workers, one session, and what a client may not name."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
from tests.harness.server_process import ServerProcess, serve

HEADER = "X-Amzn-SageMaker-Session-Id"
MODEL = f"""
import os
from djl_python import Output, SessionManager

sessions = None

def handle(inputs):
    global sessions
    if inputs.is_empty():
        sessions = SessionManager(inputs.get_properties())
        return None
    try:
        session = sessions.get_session(inputs.get_property("{HEADER}")) or sessions.create_session()
    except ValueError as error:
        return Output().error(str(error))
    count = session.get("count", 0) + 1
    session.put("count", count)
    inside = os.getpid(), count
    return Output().add_as_json(inside).add_property("{HEADER}", session.session_id)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, Path]]:
    folder = tmp_path_factory.mktemp("sessions")
    model = folder / "counting"
    model.mkdir()
    (model / "model.py").write_text(MODEL)
    kept = folder / "kept"
    settings = f"engine=Python\nminWorkers=2\nmaxWorkers=2\noption.sessions_path={kept}\n"
    (model / "serving.properties").write_text(settings)
    with serve(folder / "log", model) as running:
        yield running, kept


def ask(server: ServerProcess, session: str = "") -> tuple[int, str, object]:
    """Status, session and body of an answer."""
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
        connection.request("POST", "/predictions/counting", b"x", {HEADER: session} if session else {})
        answer = connection.getresponse()
        return answer.status, answer.getheader(HEADER) or "", json.loads(answer.read())


def test_whichever_worker_answers_knows_the_session(server: tuple[ServerProcess, Path]) -> None:
    process, kept = server
    status, session, first = ask(process)
    assert (status, first[1]) == (200, 1)
    workers = set()
    for number in range(2, 202):
        status, name, (worker, count) = ask(process, session)
        assert (status, name, count) == (200, session, number)
        workers.add(worker)
        if len(workers) == 2:
            break
    assert oct(os.stat(kept / session).st_mode)[-3:] == "700"


@pytest.mark.parametrize("name", ["..", "../kept", "00000000-0000-0000-0000-000000000000", "/etc"])
def test_a_name_that_nobody_was_given_is_refused(server: tuple[ServerProcess, Path], name: str) -> None:
    status, _, body = ask(server[0], name)
    assert (status, body["error"]) == (424, f"session not found: {name}")
