"""The words of `trivium check --all` for the fields of a model's spec, whose own names are the code's matter. Pure."""

import re

from trivium.types.spec import Join

_INDEX = re.compile(r"\[[^\]]*\]")
_WORDS = {
    "root": "folder",
    "entry": "model_file",
    "inputs.inner": "reshape",
    "inputs.ragged": "allow_ragged_batch",
    "inputs.open": "takes_any_datatype_and_shape",
    "inputs.many": "takes_any_number_of_tensors",
    "outputs.inner": "reshape",
    "outputs.ragged": "allow_ragged_batch",
    "outputs.open": "gives_any_datatype_and_shape",
    "outputs.many": "gives_any_number_of_tensors",
    "batching.batch_axis": "has_batch_dimension",
    "batching.max_rows": "max_batch_size",
    "batching.merge": "joins_requests",
    "batching.join": "how_they_are_joined",
    "scheduling.max_delay": "max_queue_delay_seconds",
    "scheduling.preferred_rows": "preferred_batch_size",
    "scheduling.levels": "priority_levels",
    "scheduling.default_level": "default_priority_level",
    "scheduling.default_policy": "default_queue_policy",
    "scheduling.level_policies": "priority_queue_policy",
    "groups": "instances",
    "groups.minimum": "always_open",
    "groups.maximum": "open_at_most",
    "groups.idle_seconds": "closed_after_idle_seconds",
    "groups.device_ids": "gpus",
    "groups.isolation": "runs_in",
    "groups.claim": "rate_limiter",
    "groups.is_fixed": "number_is_fixed",
    "groups.span": "gpus_of_each",
    "groups.ranks": "processes_of_each",
    "groups.are_passive": "first_process_alone_is_asked",
    "limits.fills_early": "keeps_a_place_for_a_free_instance",
    "limits.needs_free": "refuses_without_a_free_instance",
    "limits.retry_steps": "restart_pauses_seconds",
    "limits.run_deadline": "run_seconds",
    "limits.startup_deadline": "startup_seconds",
    "limits.item_deadline": "request_seconds",
    "limits.recycle_items": "worker_replaced_after_requests",
    "limits.recycle_bytes": "worker_replaced_after_bytes",
    "limits.most_bytes": "worker_killed_beyond_bytes",
    "warmups.rows": "batch_size",
    "translator.most_rows": "inputs_at_once",
    "streams": "may_answer_in_parts",
    "in_order": "preserve_ordering",
    "caches": "response_cache",
    "is_versioned": "has_a_version_of_its_own",
    "in_turns": "versions_take_turns",
    "standing": "calls_before_it_serves",
}
"""A field, without the numbers of its blocks -> what its last part is called."""

_JOINS = {
    Join.ROWS: "one behind the other along the first dimension",
    Join.STACK: "one upon the other along a new first dimension",
    Join.PAD: "one upon the other along a new first dimension, shorter ones filled up with zeros",
}


def field_words(field: str) -> str:
    """Return what people call a field: `groups[0].claim` as `instances[0].rate_limiter`."""
    path: list[str] = []
    said: list[str] = []
    for part in re.findall(r"(?:[^.\[]|\[[^\]]*\])+", field):
        name = _INDEX.sub("", part)
        path.append(name)
        said.append(_WORDS.get(".".join(path), name) + part[len(name) :])
    return ".".join(said)


def join_words(join: Join) -> str:
    """Return in words how requests are put together."""
    return _JOINS[join]
