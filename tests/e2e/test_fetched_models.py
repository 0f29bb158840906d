"""Models that are fetched: at the start, by registration and by `trivium serve`; refused where nobody allowed it."""

import subprocess
import threading
from pathlib import Path

from tests.harness.djl_serving import djl_serving
from tests.harness.raw_http import ask
from tests.harness.server_process import COMMAND, SECONDS, environment, until
from tests.harness.web import body, dripping, redirect, status, web, zipped

HANDLER = """
from djl_python import Output
def handle(inputs):
    return None if inputs.is_empty() else Output().add("{}")
"""
PROPERTIES = "engine=Python\nminWorkers=1\nmaxWorkers=1\n"


def packed(word: str, **more: str | bytes) -> bytes:
    return zipped({"model.py": HANDLER.format(word), "serving.properties": PROPERTIES, **more})


def check(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        (*COMMAND, "check", *words),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**environment(), "COLUMNS": "300"},
    )
    return done.returncode, done.stdout + done.stderr


def fetched(scratch: Path) -> list[Path]:
    """Folders of what was fetched, at this moment."""
    return [place for server in scratch.iterdir() for place in server.glob("fetched-*")]


def test_models_are_fetched_at_the_start_and_by_registration_and_freed_again(tmp_path: Path) -> None:
    answers = {
        "/store/a.zip": body(packed("first")),
        "/store/b.zip": redirect("/store/real"),
        "/store/real": body(packed("second")),
        "/store/bomb.zip": body(zipped({"model.py": b"\0" * 2**26})),
        "/store/broken.zip": body(packed("broken")[:-30]),
        "/store/away.zip": redirect("http://169.254.169.254/latest/meta-data/x.zip"),
        "/elsewhere/c.zip": body(packed("third")),
    }
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    with web(answers) as server:
        variables = {"TRIVIUM_FETCH_FROM": f"{server.url}/store", "TMPDIR": str(scratch)}
        words = ("-m", f"mine={server.url}/store/a.zip")
        with djl_serving(tmp_path / "log", *words, variables=variables) as djl:
            assert djl.infer("POST", "/predictions/mine").body == b"first"

            def register(url: str) -> tuple[int, str]:
                answer = djl.manage("POST", f"/models?url={url}")
                return answer.status, answer.body.decode()

            held = len(fetched(scratch))
            assert held == 1
            assert register(f"{server.url}/store/b.zip")[0] == 200
            assert djl.infer("POST", "/predictions/b").body == b"second"
            for url, code, said in (
                (f"{server.url}/elsewhere/c.zip", 403, "not among the places"),
                (f"{server.url}/store/../elsewhere/c.zip", 400, "its path has"),
                (f"http://localhost:{server.port}/store/a.zip", 403, "not among the places"),
                (f"{server.url}/store/away.zip", 403, "not among the places"),
                (f"{server.url}/store/none.zip", 404, "answered 404"),
                (f"{server.url}/store/model", 501, "does not end like an archive"),
                (f"{server.url}/store/bomb.zip", 500, "holds more than"),
                (f"{server.url}/store/broken.zip", 404, "Nothing to serve was found in http://"),
                ("gs://bucket/m", 501, "not fetched from gs://"),
                ("hdfs://h/m", 501, "Download the model"),
            ):
                assert register(url)[0] == code, (url, register(url))
                assert said in register(url)[1]
                assert "fetched-" not in register(url)[1]
            assert djl.manage("DELETE", "/models/b").status == 200
            until(lambda: len(fetched(scratch)) == held, lambda: "it is not freed")
            assert register(f"{server.url}/store/b.zip")[0] == 200
            assert djl.infer("POST", "/predictions/b").body == b"second"
    assert not fetched(scratch)


def test_a_registration_that_drips_holds_nothing_up(tmp_path: Path) -> None:
    stop = threading.Event()
    with web({"/slow.zip": dripping(stop), "/m.zip": body(packed("fast"))}) as server:
        variables = {"TRIVIUM_FETCH_FROM": server.url, "TRIVIUM_FETCH_SECONDS": "600"}
        with djl_serving(tmp_path / "log", variables=variables) as djl:
            path = f"/models?url={server.url}/slow.zip&synchronous=true"
            waiting = [threading.Thread(target=lambda: ask(djl.port, _post(path))) for _ in range(6)]
            for thread in waiting:
                thread.start()
            until(lambda: server.asked.count("/slow.zip") == 6, lambda: str(server.asked))
            assert djl.manage("POST", f"/models?url={server.url}/m.zip").status == 200
            assert djl.infer("POST", "/predictions/m").body == b"fast"
            stop.set()
            for thread in waiting:
                thread.join()


def _post(path: str) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".encode()


def test_check_and_serve_understand_a_url(tmp_path: Path) -> None:
    with web({"/m.zip": body(packed("x")), "/gone.zip": status(410)}) as server:
        assert check("--fetch-from", server.url, f"{server.url}/m.zip")[0] == 0
        for words, said in (
            ((f"{server.url}/m.zip",), "--fetch-from"),
            (("--fetch-from", server.url, f"{server.url}/gone.zip"), "answered 410"),
            (("djl://a/b",), "not fetched from djl://"),
            (("--fetch-from", "gs://b", f"{server.url}/m.zip"), "scheme://host"),
        ):
            code, text = check(*words)
            assert (code, said in " ".join(text.split())) == (1, True), text
            assert "No such file" not in text
