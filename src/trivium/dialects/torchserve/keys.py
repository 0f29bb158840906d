"""What becomes of each key of model-config.yaml: used, passed on, reported (no effect on results) or refused.

A row per key of the sheet's table (spec sheet `torchserve`, section 3.4). A key that is not here is the handler's own
and reaches it untouched, as all of them do. `harmless` is the value for which a reported or refused key makes no
difference.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Role(Enum):
    """What a format does with a key."""

    USED = "used"
    PASSED_ON = "passed on"
    REPORTED = "reported"
    REFUSED = "refused"


class Kind(Enum):
    """What its value must be; the value is for people."""

    NUMBER = "a whole number"
    NUMBERS = "a list of whole numbers"
    FLAG = "true or false"
    TEXT = "text"
    ANY = "anything"


@dataclass(frozen=True, slots=True)
class Row:
    """The role of a key, what its value is, the least number that counts, what is said where it is not served."""

    role: Role
    kind: Kind = Kind.ANY
    least: int = 0
    text: str = ""
    harmless: object = None


_ISSUE = "it comes with the issue that completes the TorchServe dialect"


def _used(kind: Kind, least: int = 0) -> Row:
    return Row(Role.USED, kind, least)


def _refused(kind: Kind, text: str, harmless: object = None) -> Row:
    return Row(Role.REFUSED, kind, text=f"{text} ({_ISSUE})", harmless=harmless)


def _reported(kind: Kind, text: str, harmless: object = None) -> Row:
    return Row(Role.REPORTED, kind, text=f"{text} ({_ISSUE})", harmless=harmless)


_SEQUENCE = "it has an effect with sequenceBatching only, which is not served yet"

ROWS: Mapping[str, Row] = {
    "minWorkers": _used(Kind.NUMBER, 1),
    "maxWorkers": _used(Kind.NUMBER, 1),
    "batchSize": _used(Kind.NUMBER, 1),
    "maxBatchDelay": _used(Kind.NUMBER),
    "responseTimeout": _used(Kind.NUMBER, 1),
    "startupTimeout": _used(Kind.NUMBER, 1),
    "deviceType": _used(Kind.TEXT),
    "deviceIds": _used(Kind.NUMBERS),
    "jobQueueSize": _used(Kind.NUMBER, 1),
    "handler": Row(Role.PASSED_ON),
    "pt2": Row(Role.PASSED_ON),
    "micro_batching": Row(Role.PASSED_ON),
    "pippy": Row(Role.PASSED_ON),
    "deepspeed": Row(Role.PASSED_ON),
    "dali": Row(Role.PASSED_ON),
    "maxRetryTimeoutInSec": _reported(
        Kind.NUMBER, "a worker that dies is started again a number of times", 300
    ),
    "clientTimeoutInMills": _reported(
        Kind.NUMBER, "a request waits for its answer as long as its client does", 0
    ),
    "useJobTicket": _reported(Kind.FLAG, "requests wait in the queue for a free worker", False),
    "useVenv": _reported(Kind.FLAG, "the handler runs under the server's own interpreter", False),
    "sequenceMaxIdleMSec": _reported(Kind.NUMBER, _SEQUENCE, 0),
    "sequenceTimeoutMSec": _reported(Kind.NUMBER, _SEQUENCE, 0),
    "maxSequenceJobQueueSize": _reported(Kind.NUMBER, _SEQUENCE, 1),
    "maxNumSequence": _reported(Kind.NUMBER, _SEQUENCE, 1),
    "parallelType": _refused(Kind.TEXT, "one model over several processes is not served yet"),
    "parallelLevel": _refused(Kind.NUMBER, "one model over several processes is not served yet", 0),
    "torchrun": _refused(Kind.ANY, "workers started by torchrun are not served yet"),
    "continuousBatching": _refused(Kind.FLAG, "continuous batching is not served yet", False),
    "sequenceBatching": _refused(Kind.FLAG, "stateful sequences are not served yet", False),
    "asyncCommunication": _refused(Kind.FLAG, "handlers with `async def handle` are not served yet", False),
}
