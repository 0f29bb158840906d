"""Checks the ensemble of a config.pbtxt, as far as its own file shows it.

Whether the steps' models are there, and fit together, the core finds out when it has them (sheet "triton", section
2.5). Pure.
"""

from collections.abc import Iterator

from trivium.servers.triton.words.config_text import ConfigText
from trivium.types.findings import Change, Finding

MOST_STEPS = 1000


def check_ensemble(text: ConfigText) -> Iterator[Finding]:
    """Steps that name their models, and nothing that only a model of its own has."""
    if not text.config.HasField("ensemble_scheduling"):
        return
    steps = text.config.ensemble_scheduling.step
    if len(steps) > MOST_STEPS:
        hint = "Put some of them together in a model, or in an ensemble of their own."
        yield text.fault("ensemble_scheduling", f"{len(steps)} steps", f"at most {MOST_STEPS} steps", hint)
    for i, step in enumerate(steps):
        key = f"ensemble_scheduling.step[{i}]"
        if step.model_version < -1:
            found, change = f"{step.model_version}", Change(value="-1")
            yield text.fault(f"{key}.model_version", found, "-1 or a version", "Write -1.", change)
        if f"{key}.model_version" not in text.entries:
            hint = "Add model_version: -1 for the latest."
            yield text.notice(
                f"{key}.model_version",
                "no model_version, which means version 0, not the latest",
                hint=hint,
                mends=(Change(value="-1"),),
            )
        tensors = [step.output_map[name] for name in step.output_map]
        for tensor in sorted({tensor for tensor in tensors if tensors.count(tensor) > 1}):
            yield text.fault(
                f"{key}.output_map", f"{tensor} twice", "names that differ", "Rename one of the two."
            )
    for name in ("instance_group", "model_warmup"):
        if len(getattr(text.config, name)):
            hint = "Write it into the configurations of the steps' models."
            yield text.fault(
                name, f"{name} in an ensemble", f"no {name}: it has no instances of its own", hint
            )
