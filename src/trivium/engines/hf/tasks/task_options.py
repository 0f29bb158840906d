"""Reads what a spec's parameters mean to the engine `hf-tasks`. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from trivium.settings.kinds import DIGIT_SWITCH, Form, OneOf, Whole
from trivium.settings.parameters import read_parameters, unknown_parameters
from trivium.settings.setting import Setting
from trivium.types.model_tasks import NAMES, ModelTask, task_named
from trivium.types.spec import ModelSpec

DEFAULT_INPUT = 4096
"""Tokens of one text, where the model has no positions of its own to count."""

SETTINGS = (
    Setting("task", Form(f"one of {', '.join(NAMES)}", task_named), help="What the model is for."),
    Setting(
        "dtype",
        OneOf(("auto", "fp32", "fp16", "bf16"), any_case=True),
        "auto",
        "Data type that is computed in; auto: fp32 on a processor, that of the file on a GPU.",
    ),
    Setting("threads", Whole(1, 9999), help="Threads that compute."),
    Setting("trust_remote_code", DIGIT_SWITCH, False, "May code of the model's folder run."),
    Setting(
        "enable_streaming",
        OneOf(("false", "true", "huggingface"), any_case=True),
        "false",
        "Whether an answer leaves in pieces, as its tokens come.",
    ),
    Setting(
        "max_input_tokens",
        Whole(2, 2**20),
        DEFAULT_INPUT,
        "Tokens of one text at most, where the model itself has no bound.",
    ),
)


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """One model's own. `task` None: the one that the class of config.json tells."""

    task: ModelTask | None = None
    dtype: str = "auto"
    threads: int | None = None
    trust_remote_code: bool = False
    enable_streaming: str = "false"
    max_input_tokens: int = DEFAULT_INPUT

    @property
    def streams(self) -> bool:
        """Does an answer leave in pieces? LMI's two ways of it differ in nothing that a client sees."""
        return self.enable_streaming != "false"


def unknown(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each parameter that means nothing to this engine."""
    return unknown_parameters(parameters, "hf-tasks", (row.name for row in SETTINGS))


def task_options(spec: ModelSpec) -> TaskOptions:
    """Return the model's own options. LOAD_FAILED names each value that cannot be, and where it stands."""
    return TaskOptions(**read_parameters(spec, SETTINGS))
