"""A manifest and a model-config.yaml -> the fields of a ModelSpec, each with where its value was found.

Foreign words and units end here: milliseconds become seconds. Source: spec sheet `torchserve`, sections 3.4, 8.5 and
11; defaults are the original's, where a comment does not say otherwise.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from trivium.servers.torchserve.archive import sequences
from trivium.servers.torchserve.archive.sequences import is_stateful
from trivium.servers.torchserve.words import layers
from trivium.servers.torchserve.words.layers import ServerRules
from trivium.servers.torchserve.words.manifest import Manifest
from trivium.servers.torchserve.words.metrics_config import rows_of
from trivium.servers.torchserve.words.model_config import ModelConfig
from trivium.servers.torchserve.words.original import SERVER_VERSION
from trivium.types.findings import Finding, Severity
from trivium.types.schedules import Sequence
from trivium.types.spec import (
    MOST_INSTANCES,
    Batching,
    Defaults,
    Device,
    Dynamic,
    InstanceGroup,
    Limits,
    Origin,
)

_METRICS = Origin("the server's metrics.yaml, model_metrics", "")
CONTINUOUS, TICKETS, ASYNC = "continuousBatching", "useJobTicket", "asyncCommunication"
MOST_AT_ONCE = 1000
"""Requests that an asynchronous handler has at once in one worker; the original has no bound."""

DELAY_MS = 100
TIMEOUT_S = 120
RETRY_S = 300
RETRY_STEPS_S = (
    1.0,
    1.0,
    2.0,
    3.0,
    5.0,
    8.0,
    13.0,
    21.0,
    34.0,
    55.0,
    89.0,
    144.0,
    233.0,
    377.0,
    610.0,
    987.0,
    1597.0,
)
"""Between two starts of a worker that fail."""


def is_continuous(config: ModelConfig) -> bool:
    """Return whether the handler is called again and again with all requests that have not ended."""
    return config.values.get(CONTINUOUS) is True


def is_async(config: ModelConfig) -> bool:
    """Return whether the handler works on many requests at once, each in a call of its own."""
    return config.values.get(ASYNC) is True


def is_merged(config: ModelConfig, rules: ServerRules) -> bool:
    """Return whether several requests are handed over in one call: not in an envelope that holds one."""
    has_room = (config.number("batchSize") or 1) > 1
    works_alone = is_continuous(config) or is_async(config)
    return has_room and not works_alone and rules.envelope not in layers.ONE_AT_A_TIME


def batching(config: ModelConfig, rules: ServerRules) -> Batching:
    """A batch is a list of requests, which the handler goes through: nothing is stacked."""
    size = config.number("batchSize") or 1
    return Batching(batch_axis=False, max_rows=size, merge=is_merged(config, rules))


def check_async(config: ModelConfig, rules: ServerRules) -> list[Finding]:
    """Name the other ways to work that a handler cannot have as well, and a delay that nothing waits for."""
    if not is_async(config):
        return []
    found = [
        Finding(
            Severity.ERROR,
            config.file,
            config.lines.get(key),
            key,
            f"{key} with {ASYNC}",
            "one of the two",
            f"Remove {key}: the requests of a handler with async def run at once, one by one.",
        )
        for key in (CONTINUOUS, sequences.STATEFUL)
        if config.values.get(key) is True
    ]
    if rules.envelope:
        text = f"{ASYNC} with the envelope {rules.envelope}"
        hint = f"Leave service_envelope out, or remove {ASYNC}: an envelope is taken off around a plain call."
        place = (Severity.ERROR, config.file, config.lines.get(ASYNC), ASYNC)
        found.append(Finding(*place, text, "one of the two", hint))
    if (config.number("batchSize") or 1) > 1:
        found.append(
            config.notice("batchSize", f"with {ASYNC} each call has one request, and none waits for others")
        )
    return found


def scheduling(config: ModelConfig, rules: ServerRules) -> Dynamic | Sequence:
    """A batch that is not full always waits its whole delay; without batches nothing waits."""
    max_delay = 0.0
    if is_merged(config, rules):
        delay = config.number("maxBatchDelay")
        max_delay = (DELAY_MS if delay is None else delay) / 1000
    if is_stateful(config):
        return sequences.sequence(config, rules, max_delay, is_continuous(config))
    return Dynamic(max_delay=max_delay)


def groups(
    name: str, config: ModelConfig, defaults: Defaults
) -> tuple[tuple[InstanceGroup, ...], list[Finding]]:
    """One group, and what is to be said of it. The original starts as many workers as there are CPUs or GPUs, each
    with its own copy of the model; here one is started unless the file, or the server's configuration, says how many.
    """
    findings: list[Finding] = []
    lowest = config.number("minWorkers")
    lowest = 1 if lowest is None else lowest
    most = config.number("maxWorkers")
    most = lowest if most is None else most
    if most < lowest:
        findings.append(
            config.notice("maxWorkers", f"{most} is less than minWorkers, {lowest}; both are ignored")
        )
        lowest = most = 1
    if most > MOST_INSTANCES:
        key = "maxWorkers" if config.number("maxWorkers") else "minWorkers"
        expected, hint = (
            f"a number from 1 to {MOST_INSTANCES}",
            "Write how many this machine can run at once.",
        )
        place = config.place(key)
        findings.append(Finding(Severity.ERROR, place.file, place.line, place.key, str(most), expected, hint))
    if config.values.get(TICKETS) is True and most > lowest:
        said = "no more workers are started than minWorkers, since no request waits for one"
        findings.append(config.notice("maxWorkers", f"{most} with {TICKETS}: {said}"))
    wants = config.values.get("deviceType")
    device = Device.GPU if defaults.gpus and wants != "cpu" else Device.CPU
    if wants == "gpu" and not defaults.gpus:
        findings.append(config.notice("deviceType", "gpu, and this machine has none: the CPU is used"))
    elif wants not in (None, "cpu", "gpu"):
        findings.append(config.notice("deviceType", f"{wants!r} is neither cpu nor gpu; it is ignored"))
    ids = config.numbers("deviceIds")
    if ids and any(one >= defaults.gpus for one in ids):
        findings.append(
            config.notice(
                "deviceIds", f"{list(ids)}, and there are {defaults.gpus} GPUs; the list is ignored"
            )
        )
        ids = ()
    if device is Device.CPU:
        ids = ()
    elif not ids:
        ids = tuple(range(defaults.gpus))
    group = InstanceGroup(name, lowest, most, device=device, device_ids=ids)
    if is_stateful(config):  # a worker beyond the least is closed once all of its sequences are over
        idle = (config.number(sequences.IDLE) or 0) / 1000 + 1
        group = replace(group, idle_seconds=max(group.idle_seconds, idle))
    return (group,), findings


def envelope_notices(config: ModelConfig, rules: ServerRules) -> list[Finding]:
    """Return what is to be said of a batch that an envelope has no room for."""
    size = config.number("batchSize") or 1
    if size == 1 or rules.envelope not in layers.ONE_AT_A_TIME:
        return []
    text = f"{size}, and the envelope {rules.envelope} holds one request: each is handed over alone"
    return [config.notice("batchSize", text)]


def limits(config: ModelConfig, defaults: Defaults, rules: ServerRules) -> Limits:
    """Return the limits of the queue, of an answer's time and size, and of a worker's start."""
    items = config.number("jobQueueSize") or defaults.queue_items
    retry, client = config.number("maxRetryTimeoutInSec"), config.number("clientTimeoutInMills")
    return Limits(
        queue_items=sequences.most_waiting(config) if is_stateful(config) else items,
        run_deadline=float(config.number("responseTimeout") or TIMEOUT_S),
        startup_deadline=float(config.number("startupTimeout") or TIMEOUT_S),
        needs_free=config.values.get(TICKETS) is True,
        retry_seconds=float(RETRY_S if retry is None else retry),
        retry_steps=RETRY_STEPS_S,
        item_deadline=client / 1000 if client else None,
        answer_bytes=rules.answer_bytes,
        drain_seconds=rules.unregister_seconds,
    )


def environment(rules: ServerRules) -> Mapping[str, str]:
    """Return the variables that a worker has from its server; its context takes the names of headers from the last."""
    names = rules.sequence_names
    return {
        "TS_DECODE_INPUT_REQUEST": "true" if rules.decodes_requests else "false",
        "TS_IPEX_ENABLE": "false",
        "TS_IPEX_GPU_ENABLE": "false",
        "TS_REQUEST_SEQUENCE_ID": names.id,
        "TS_REQUEST_SEQUENCE_START": names.start,
        "TS_REQUEST_SEQUENCE_END": names.end,
    }


def settings(manifest: Manifest, config: ModelConfig, rules: ServerRules) -> dict[str, object]:
    """Return what `trivium_worker.dialects.torchserve` needs to know besides what every worker gets."""
    return {
        "manifest": dict(manifest.document),
        "model_yaml_config": config.document,
        "server_version": SERVER_VERSION,
        "limit_max_image_pixels": rules.limits_pixels,
        "decode_input_request": rules.decodes_requests,
        **({"slots": slots(config)} if is_continuous(config) else {}),
        "service_envelope": rules.envelope,
        **({} if rules.metrics is None else {"metrics": rows_of(rules.metrics)}),
        **({"in_flight": MOST_AT_ONCE} if is_async(config) else {}),
    }


def slots(config: ModelConfig) -> int:
    """Return how many requests a call of the handler has at most: with sequences twice the batch, as in the original,
    so that a request can join one of its sequence that streams.
    """
    return (config.number("batchSize") or 1) * (2 if is_stateful(config) else 1)


def origins(
    manifest: Manifest, config: ModelConfig, defaults: Defaults, entry: Origin, rules: ServerRules
) -> Mapping[str, Origin]:
    """Return where each field comes from: a key of one of the two files, or a rule."""

    config_origin = partial(layers.config_origin, config)

    def manifest_origin(key: str, rule: str) -> Origin:
        line = manifest.lines.get(f"model.{key}")
        return Origin(manifest.file, f"model.{key}", line) if line else Origin(rule, "")

    one = f"default of one worker (the original starts one per CPU: {defaults.cpus} here)"
    batch = config_origin("batchSize", "TorchServe's default: one request at a time")
    return {
        "name": manifest_origin("modelName", "the file's name"),
        "version": manifest_origin("modelVersion", "TorchServe's default"),
        "engine": Origin("a TorchServe handler is Python", ""),
        "entry": entry,
        "handler.function": entry,
        "batching.batch_axis": Origin("a batch is a list of requests", ""),
        "batching.max_rows": batch,
        "batching.merge": batch,
        "batching.join": Origin("a batch is a list of requests", ""),
        "scheduling.max_delay": config_origin(
            "maxBatchDelay", f"TorchServe's default: {DELAY_MS} ms where requests are batched"
        ),
        "groups[0].name": manifest_origin("modelName", "the model's name"),
        "groups[0].minimum": config_origin("minWorkers", one),
        "groups[0].maximum": config_origin(
            "maxWorkers", "as many as the least" if "minWorkers" in config.values else one
        ),
        "groups[0].device": config_origin("deviceType", f"a GPU where there is one: {defaults.gpus} here"),
        "groups[0].device_ids": config_origin("deviceIds", "all GPUs in turn"),
        **_limit_origins(config),
        "version_policy": Origin("every archive is served", ""),
        "handler.path": Origin("rule: the handler's folder, then the model's", ""),
        "handler.directory": Origin("rule: the model's folder", ""),
        "handler.own": Origin("requirementsFile and useVenv", ""),
        "handler.settings[manifest]": Origin(manifest.file, ""),
        **({"handler.settings[slots]": batch} if is_continuous(config) else {}),
        **({} if rules.metrics is None else {"handler.settings[metrics]": _METRICS}),
        **({"handler.settings[in_flight]": config_origin(ASYNC, "")} if is_async(config) else {}),
        "handler.settings[model_yaml_config]": Origin(config.file or "no model-config.yaml", ""),
        **{
            f"handler.environment[{name}]": Origin("as TorchServe starts its workers", "")
            for name in environment(rules)
        },
        **sequences.origins(config),
    }


def _limit_origins(config: ModelConfig) -> Mapping[str, Origin]:
    config_origin = partial(layers.config_origin, config)
    return {
        "limits.queue_items": config_origin("jobQueueSize", "the server's default bound"),
        "limits.run_deadline": config_origin("responseTimeout", "TorchServe's default"),
        "limits.retry_seconds": config_origin("maxRetryTimeoutInSec", "TorchServe's default"),
        "limits.retry_steps": Origin("as TorchServe starts its workers", ""),
        "limits.item_deadline": config_origin(
            "clientTimeoutInMills", "TorchServe's default: as long as its client waits"
        ),
        "limits.answer_bytes": Origin("the server's max_response_size, if it has one", ""),
        "limits.drain_seconds": Origin("the server's unregister_model_timeout, if it has one", ""),
        "limits.needs_free": config_origin(TICKETS, "TorchServe's default: requests wait for a worker"),
        "limits.startup_deadline": config_origin("startupTimeout", "TorchServe's default"),
    }
