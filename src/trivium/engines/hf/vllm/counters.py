"""Takes what vLLM counts of its steps, and adds it up for the thread that asks for it."""

from typing import Any


class StepCounters:
    """One per instance: vLLM calls it as a logger of its statistics, from its own thread. `share` is that of the room
    for keys and values which is taken; `preempted` counts requests that gave it back, to be computed again later.
    """

    def __init__(self) -> None:
        self.share = 0.0
        self.preempted = 0

    def opened(self, vllm_config: Any, engine_index: int = 0) -> "StepCounters":
        """Return the logger of an engine: this one for each."""
        return self

    def record(
        self,
        scheduler_stats: Any,
        iteration_stats: Any,
        mm_cache_stats: Any = None,
        engine_idx: int = 0,
    ) -> None:
        """Take what a step counted."""
        if scheduler_stats is not None:
            self.share = float(scheduler_stats.kv_cache_usage)
        if iteration_stats is not None:
            self.preempted += int(iteration_stats.num_preempted_reqs)

    def log_engine_initialized(self) -> None:
        """There is nothing to say."""

    def log(self) -> None:
        """There is nothing to say."""

    def record_sleep_state(self, is_awake: int, level: int) -> None:
        """It never sleeps."""
