"""The keys of model-config.yaml for sequences -> the spec's words, and what is to be said of them.

Source: spec sheet `torchserve`, sections 3.4, 4.5 and 11, and what 0.12.0 does: without an idle time it serves nothing.
"""

from collections.abc import Mapping

from trivium.servers.torchserve.words.layers import ServerRules, config_origin
from trivium.servers.torchserve.words.model_config import ModelConfig
from trivium.types.findings import Finding, Severity
from trivium.types.schedules import Sequence, SequenceProperties, Strategy, Unannounced
from trivium.types.spec import Origin

STATEFUL = "sequenceBatching"
IDLE, LIFE = "sequenceMaxIdleMSec", "sequenceTimeoutMSec"
MOST, WAITING = "maxNumSequence", "maxSequenceJobQueueSize"
PREFIX = "ts-seq-"
_DESCRIPTIONS = 8
"""Places beside those of sequences, for requests that ask a handler what it says of itself."""


def is_stateful(config: ModelConfig) -> bool:
    """Return whether the model's requests belong to sequences."""
    return config.values.get(STATEFUL) is True


def most_waiting(config: ModelConfig) -> int:
    """Return how many requests may wait for a model with sequences: as many as each of them may have."""
    return (config.number(MOST) or 1) * ((config.number(WAITING) or 1) + 1) + _DESCRIPTIONS


def sequence(config: ModelConfig, rules: ServerRules, max_delay: float, overlaps: bool) -> Sequence:
    """Return the rules of a model's sequences; nothing binds more of them to one worker than there may be."""
    most = config.number(MOST) or 1
    life = config.number(LIFE) or 0
    names = rules.sequence_names
    return Sequence(
        Strategy.OLDEST,
        idle_seconds=(config.number(IDLE) or 0) / 1000,
        candidates=most + _DESCRIPTIONS,
        max_delay=max_delay,
        unannounced=Unannounced(
            SequenceProperties(names.id, names.start, names.end),
            PREFIX,
            most,
            config.number(WAITING) or 1,
            life / 1000 if life else None,
        ),
        overlaps=overlaps,
    )


def check(config: ModelConfig, may_be: bool = True) -> list[Finding]:
    """Name what has no effect, and refuse a missing idle time, without which the original answers no request. Unless
    there `may_be` sequences, for a model without code, they are refused.
    """
    keys = (IDLE, LIFE, MOST, WAITING)
    if not is_stateful(config):
        return [
            config.notice(key, f"it has an effect with {STATEFUL}: true only")
            for key in keys
            if config.number(key)
        ]
    if not may_be:
        hint = "Remove it: a language model that is built in keeps nothing between requests."
        place = config.lines.get(STATEFUL)
        return [
            Finding(Severity.ERROR, config.file, place, STATEFUL, "true", "a handler in the archive", hint)
        ]
    if config.number(IDLE):
        one = "it is not given, and so there is one sequence at a time, as in the original"
        return [] if config.number(MOST) else [config.notice(MOST, one)]
    found, hint = f"no {IDLE} with {STATEFUL}", f"Write {IDLE}: 60000, for example."
    place = config.lines.get(IDLE, config.lines.get(STATEFUL))
    return [
        Finding(
            Severity.ERROR, config.file, place, IDLE, found, "milliseconds until a sequence is given up", hint
        )
    ]


def origins(config: ModelConfig) -> Mapping[str, Origin]:
    """Return where each field comes from."""
    if not is_stateful(config):
        return {}
    default = "TorchServe's default: 1"
    return {
        "scheduling.strategy": Origin("a worker may have any number of sequences", ""),
        "scheduling.idle_seconds": config_origin(config, IDLE, ""),
        "scheduling.candidates": config_origin(config, MOST, default),
        "scheduling.unannounced": config_origin(config, STATEFUL, ""),
        "scheduling.unannounced.most": config_origin(config, MOST, default),
        "scheduling.unannounced.most_waiting": config_origin(config, WAITING, default),
        "scheduling.unannounced.life_seconds": config_origin(config, LIFE, "a sequence may have any age"),
        "scheduling.overlaps": Origin(
            "a request may join others of its sequence with continuousBatching", ""
        ),
        "limits.queue_items": Origin("as many as all sequences may have waiting", ""),
    }
