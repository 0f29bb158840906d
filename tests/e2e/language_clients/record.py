"""Have litellm and llama-index talk to our server, and write down what they sent: `requests.json`, which `make clients`
makes. Fails where a call comes to something else than expected.

`conversations.py` is what they do, in the environment whose Python is the argument.
"""

import http.client
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.harness.language_models import write
from tests.harness.server_process import serve

HERE = Path(__file__).parent
RECORD = HERE / "requests.json"
MODEL, CONTEXT = "m", 256
WORDS = ("--engine-parameters", f"hf.threads=1,hf.slots=2,hf.max_context={CONTEXT}")
LONG = "a b c " * 400
"""A text that is too long for the model; the record has a word in its place."""
AS_LONG = "<long>"
EXPECTED = {
    "too long": "ContextWindowExceededError",
    "no such model": "NotFoundError",
    "a wrong value": "BadRequestError",
    "tools": "BadRequestError",
    "json": "BadRequestError",
}
"""Ends of a call's name -> what it comes to; all others get their answers."""


def main(python: str) -> None:
    """Talk, check, and write."""
    with tempfile.TemporaryDirectory(prefix="clients") as place:
        folder = Path(place)
        model = write(folder / MODEL, "llama")
        with serve(folder / "log", model, *WORDS) as server, recording(server.url) as (url, requests):
            words = (python, HERE / "conversations.py", f"{url}/v1", MODEL)
            told = subprocess.run(words, check=True, capture_output=True, text=True)
    came_to = json.loads(told.stdout.splitlines()[-1])
    for name, outcome in came_to.items():
        print(f"{name}: {outcome}")
    wrong = {name: outcome for name, outcome in came_to.items() if outcome != expected(name)}
    if wrong:
        raise SystemExit(f"not as expected: {wrong}")
    RECORD.write_text(json.dumps(distinct(requests), indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def expected(name: str) -> str:
    """What a call comes to."""
    if name == "llama-index, too long":
        return "BadRequestError"
    return next((outcome for end, outcome in EXPECTED.items() if name.split(", ")[1].startswith(end)), "said")


def distinct(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first request of each kind: those that differ in nothing but what is said in their messages are one. What the
    model said, which is another thing each time, is left out.
    """
    found: dict[str, dict[str, Any]] = {}
    for one in requests:
        body = json.loads(json.dumps(one["body"]).replace(LONG, AS_LONG))
        for message in body.get("messages", ()):
            if message["role"] == "assistant":
                message["content"] = "said"
        known = {key: value for key, value in body.items() if key not in ("messages", "prompt")}
        kinds = sorted({message["role"] for message in body.get("messages", ())})
        shape = json.dumps([one["path"], known, kinds, one["code"], one["status"]], sort_keys=True)
        found.setdefault(shape, {**one, "body": body})
    return list(found.values())


@contextmanager
def recording(url: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """What sends requests on to a server and keeps them, by its URL: path, body, and how each was answered."""
    host = urlsplit(url).netloc
    kept: list[dict[str, Any]] = []

    class Recorder(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            connection = http.client.HTTPConnection(host, timeout=60)
            connection.request("POST", self.path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            told = answer.read()
            code = None if answer.status == 200 else json.loads(told)["error"]["code"]
            agent = self.headers["User-Agent"] or ""
            kept.append(
                {
                    "path": self.path,
                    "body": json.loads(body),
                    "status": answer.status,
                    "code": code,
                    "agent": agent.split()[0],
                }
            )
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{proxy.server_port}", kept
        proxy.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
