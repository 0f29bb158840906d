"""A stand-in for the module openvino_genai: a pipeline that counts, with the names and ways of the real one.

The next token is the last one and 1. A contract test compares the names with those of the real module. As there,
after a step that raised every other raises, and what is cancelled has its memory until the next step.
"""

from enum import Enum

from trivium.engines.hf.genai.pipeline import GenaiLibrary

BLOCK = 32


class SchedulerConfig:
    """How a pipeline is opened."""

    __slots__ = ("dynamic_split_fuse", "enable_prefix_caching", "max_num_batched_tokens", "num_kv_blocks")


class GenerationConfig:
    """What a request asks for."""

    __slots__ = (
        *(
            "do_sample",
            "frequency_penalty",
            "ignore_eos",
            "logprobs",
            "max_new_tokens",
            "min_new_tokens",
            "min_p",
        ),
        *(
            "presence_penalty",
            "repetition_penalty",
            "rng_seed",
            "stop_token_ids",
            "temperature",
            "top_k",
            "top_p",
        ),
    )


class GenerationStatus(Enum):
    """What has become of a request."""

    RUNNING = 0
    FINISHED = 1
    IGNORED = 2
    CANCEL = 3


class GenerationOutput:
    """Tokens that have come."""

    def __init__(self, ids, scores) -> None:
        self.generated_ids = ids
        self.generated_log_probs = scores


class GenerationHandle:
    """One request; without any holder of it, it ends."""

    def __init__(self, ids, config) -> None:
        self.ids, self.config = list(ids), config
        self.size = len(self.ids)
        self.unread: list[int] = []
        self.status = GenerationStatus.RUNNING

    def can_read(self) -> bool:
        return bool(self.unread)

    def read(self):
        token = self.unread.pop(0)
        return {0: GenerationOutput([token], [-0.5] if self.config.logprobs else [])}

    def get_status(self):
        return self.status

    def cancel(self) -> None:
        self.status = GenerationStatus.CANCEL


class ContinuousBatchingPipeline:
    """Computes a token of each request in each step, in the memory that it has."""

    opened: list["ContinuousBatchingPipeline"] = []  # noqa: RUF012 - the tests look at it

    def __init__(self, models_path, scheduler_config, device, properties) -> None:
        self.place, self.device, self.properties, self.scheduler = (
            models_path,
            device,
            properties,
            scheduler_config,
        )
        self.begun: list[GenerationHandle] = []
        self.held: list[GenerationHandle] = []
        self.is_broken = False
        self.steps = 0
        self.most = 0
        self.opened.append(self)

    def add_request(self, request_id, input_ids, generation_config):
        made = GenerationHandle(input_ids, generation_config)
        self.begun.append(made)
        self.held.append(made)
        return made

    def step(self) -> None:
        self.steps += 1
        if self.is_broken:
            raise RuntimeError(
                "Check '!m_is_scheduled' failed at src/sequence_group.hpp:784:\nalready in scheduling phase\n"
            )
        if any(one.ids == [13] for one in self.begun if one.status is GenerationStatus.RUNNING):
            self.is_broken = True
            raise RuntimeError("Exception from src/core.cpp:3:\nthe thirteenth\n")
        self.held = [one for one in self.held if one.status is GenerationStatus.RUNNING]
        self.most = max(self.most, len(self.held))
        taken = 0
        for one in self.held:
            taken += -(-(len(one.ids) + 1) // BLOCK)
            if taken > self.scheduler.num_kv_blocks:
                one.status = GenerationStatus.IGNORED
                continue
            one.ids.append(one.ids[-1] + 1)
            one.unread.append(one.ids[-1])
            if len(one.ids) - one.size >= one.config.max_new_tokens:
                one.status = GenerationStatus.FINISHED
        self.held = [one for one in self.held if one.status is not GenerationStatus.FINISHED]


def library() -> GenaiLibrary:
    """The stand-in as the engine takes the real one; a tensor is the list of its numbers."""
    ContinuousBatchingPipeline.opened.clear()
    return GenaiLibrary(__import__(__name__, fromlist=["library"]), lambda array: array[0].tolist())
