"""The archives that both servers have: small handlers, each of which does one thing that a client can see.

Written as plain text and packed by hand, so that nothing but this file says what they are.
"""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

VIEW = """
import json

def shown(value):
    if isinstance(value, (bytes, bytearray)):
        return [type(value).__name__, bytes(value).decode("latin-1")]
    return [type(value).__name__, value]

class View:
    def initialize(self, context):
        self.properties = sorted(context.system_properties)

    def handle(self, data, context):
        return [self.row(index, row, context) for index, row in enumerate(data)]

    def row(self, index, row, context):
        headers = context.get_all_request_header(index)
        if headers.get("describe") == "True":
            return {"properties": self.properties}
        return {
            "data": {name: shown(row[name]) for name in sorted(row)},
            "headers": {name: headers[name] for name in sorted(headers)},
        }
"""
"""Answers with what it was given."""

SAYS = """
import os, signal, time

class Says:
    def initialize(self, context):
        self.version = context.manifest["model"]["modelVersion"]

    def handle(self, data, context):
        words = [self.word(row) for row in data]
        if "not a list" in words:
            return "text"
        if "too many" in words:
            return ["x"] * (len(data) + 1)
        return [self.answer(index, word, context) for index, word in enumerate(words)]

    def word(self, row):
        value = row.get("body")
        if value is None:
            value = row.get("data", b"")
        return bytes(value).decode("latin-1") if isinstance(value, (bytes, bytearray)) else str(value)

    def answer(self, index, word, context):
        from ts.service import PredictionException
        verb, _, rest = word.partition(" ")
        if verb == "raise":
            raise {"value": ValueError, "memory": MemoryError, "key": KeyError}[rest]("as told")
        if verb == "cuda":
            raise RuntimeError("CUDA out of memory")
        if verb == "code":
            raise PredictionException("theirs", int(rest))
        if verb == "plain":
            raise PredictionException("theirs")
        if verb == "exit":
            os._exit(int(rest))
        if verb == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if verb == "sleep":
            time.sleep(float(rest))
        if verb == "status":
            context.set_response_status(int(rest), "Own Phrase", index)
        if verb == "type":
            context.set_response_content_type(index, rest)
        if verb == "header":
            context.set_response_header(index, "X-Own", rest)
        if verb == "json":
            return {"int": [1, 2.5, None, True], "text": "\\u00e4", "nested": {"a": []}}
        values = {"none": None, "int": 7, "float": 3.5, "true": True, "list": []}
        values.update({"bytes": b"\\x00\\xff", "text": "\\u00e4"})
        if verb in values:
            return values[verb]
        if verb == "object":
            return object()
        if verb == "set":
            return {1, 2}
        if verb == "nan":
            return float("nan")
        return "%s:%s" % (self.version, word)
"""
"""Answers as the body tells it to."""

STREAM = """
import time
from ts.handler_utils.utils import send_intermediate_predict_response

def handle(data, context):
    if data is None:
        return None
    words = [bytes(row.get("body", row.get("data", b"")) or b"").decode() for row in data]
    context.set_response_content_type(0, "text/plain")
    for number in range(3):
        parts = ["%s%d " % (word, number) for word in words]
        send_intermediate_predict_response(parts, context.request_ids, "Part", 200, context)
        if number == 1 and "fail" in words:
            raise ValueError("as told")
    return ["end" for _ in words]
"""
"""Answers in four parts."""

FUNCTION = """
def entry(data, context):
    return None if data is None else ["function"] * len(data)
"""

FAILS = """
class Fails:
    def initialize(self, context):
        raise RuntimeError("no weights")

    def handle(self, data, context):
        return data
"""

MEMORY = FAILS.replace('RuntimeError("no weights")', 'MemoryError("no room")')

LATE = (
    SAYS.replace("def initialize(self, context):", "def initialize(self, context):\n        time.sleep(2)")
    + """
    def describe_handle(self):
        return {"came": "late"}
"""
)
"""Takes its time to load."""

NAMES = """
class Names:
    def initialize(self, context):
        pass

    def handle(self, data, context):
        return ["%d of %d" % (index, len(data)) for index in range(len(data))]

    def describe_handle(self):
        return {"made": "by hand"}
"""

SEQUENCES = """
class Sums:
    def initialize(self, context):
        self.sums = {}

    def handle(self, data, context):
        answers = []
        for index, row in enumerate(data):
            name = context.get_sequence_id(index)
            value = row.get("body", row.get("data", b"0"))
            value = int(bytes(value) if isinstance(value, (bytes, bytearray)) else value)
            self.sums[name] = self.sums.get(name, 0) + value
            context.set_response_header(index, context.header_key_sequence_id, name)
            answers.append(str(self.sums[name]))
        return answers
"""

COUNTS = """
class Counts:
    def initialize(self, context):
        self.left = {}

    def handle(self, data, context):
        answers, criteria = [], []
        for index, row in enumerate(data):
            name = context.get_request_id(index)
            if name not in self.left:
                value = row.get("body", row.get("data", b"1"))
                self.left[name] = int(bytes(value) if isinstance(value, (bytes, bytearray)) else value)
            self.left[name] -= 1
            answers.append("%d " % self.left[name])
            done = self.left[name] <= 0
            criteria.append(lambda answer, done=done: done)
            if done:
                del self.left[name]
        context.stopping_criteria = criteria
        return answers
"""
"""Continuous batching: counts down from the number that it got, a step at a time."""

PLAIN = """
class Plain:
    def initialize(self, context):
        pass

    def handle(self, data, context):
        return [[type(each).__name__, each if isinstance(each, (int, float, str, dict)) else None] for each in data]
"""
"""Says what became of each row behind an envelope."""

MODELS: Mapping[str, tuple[str, str, str]] = {
    "view.mar": (VIEW, "handler.py", ""),
    "says.mar": (SAYS, "handler.py", "minWorkers: 1\nmaxWorkers: 1\nresponseTimeout: 3\n"),
    "stream.mar": (STREAM, "handler.py", ""),
    "plain.mar": (PLAIN, "handler.py", ""),
    "function.mar": (FUNCTION, "handler.py:entry", ""),
    "fails.mar": (FAILS, "handler.py", ""),
    "memory.mar": (MEMORY, "handler.py", ""),
    "names.mar": (NAMES, "handler.py", "batchSize: 4\nmaxBatchDelay: 50\nminWorkers: 1\nmaxWorkers: 1\n"),
    "sequences.mar": (
        SEQUENCES,
        "handler.py",
        "sequenceBatching: true\nbatchSize: 2\nmaxBatchDelay: 20\nminWorkers: 1\nmaxWorkers: 1\n"
        "sequenceMaxIdleMSec: 600000\nmaxSequenceJobQueueSize: 2\nmaxNumSequence: 2\n",
    ),
    "counts.mar": (
        COUNTS,
        "handler.py",
        "continuousBatching: true\nbatchSize: 2\nmaxBatchDelay: 20\nminWorkers: 1\nmaxWorkers: 1\n",
    ),
    "slow.mar": (SAYS, "handler.py", "minWorkers: 1\nmaxWorkers: 1\njobQueueSize: 1\n"),
    "four.mar": (NAMES, "handler.py", "batchSize: 4\nmaxBatchDelay: 20000\nminWorkers: 1\nmaxWorkers: 1\n"),
    "strict.mar": (SAYS, "handler.py", "batchSize: 2\nmaxBatchDelay: 20000\nminWorkers: 1\nmaxWorkers: 1\n"),
    "streams.mar": (
        STREAM,
        "handler.py",
        "batchSize: 2\nmaxBatchDelay: 20000\nminWorkers: 1\nmaxWorkers: 1\n",
    ),
    "late.mar": (LATE, "handler.py", "minWorkers: 1\nmaxWorkers: 1\njobQueueSize: 2\n"),
    "ticket.mar": (SAYS, "handler.py", "useJobTicket: true\nminWorkers: 1\nmaxWorkers: 1\n"),
}
"""File -> code, the manifest's handler, the text of model-config.yaml if there is one."""


def write_store(place: Path) -> Path:
    """Write all of them, with the versions, folders and broken files that the requests name."""
    place.mkdir(parents=True)
    for file, (code, handler, config) in MODELS.items():
        _pack(place / file, file.removesuffix(".mar"), "1.0", code, handler, config)
    _pack(place / "says2.mar", "says", "2.0", SAYS, "handler.py", "")
    _pack(place / "other.mar", "other", "1.0", SAYS, "handler.py", "")
    with zipfile.ZipFile(place / "bare.mar", "w") as packed:
        packed.writestr("handler.py", NAMES)
    (place / "broken.mar").write_bytes(b"PK\x03\x04 and no more")
    (place / "notes.txt").write_text("no model")
    return place


def _pack(path: Path, name: str, version: str, code: str, handler: str, config: str) -> None:
    model = {"modelName": name, "handler": handler, "modelVersion": version}
    if config:
        model["configFile"] = "model-config.yaml"
    with zipfile.ZipFile(path, "w") as packed:
        manifest = {
            "createdOn": "01/01/2026 00:00:00",
            "runtime": "python",
            "model": model,
            "archiverVersion": "0.12.0",
        }
        packed.writestr("MAR-INF/MANIFEST.json", json.dumps(manifest))
        packed.writestr("handler.py", code)
        if config:
            packed.writestr("model-config.yaml", config)
