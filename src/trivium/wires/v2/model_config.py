"""The typed face of the configuration: the fields that are served, as mypy shall see them.

The messages themselves are made by `descriptor`; these classes are never instantiated. Fields that are only
read, reported or refused are reached by name through the tables and need no line here. Enums are numbers.
"""

from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Protocol, TypeVar

from google.protobuf.message import Message

from trivium.wires.v2.tensor_messages import (
    BatchInputMessage,
    BatchOutputMessage,
    ModelInput,
    ModelOutput,
)

Block = TypeVar("Block", covariant=True)


class Blocks(Protocol[Block]):
    """A repeated message field."""

    def add(self) -> Block: ...
    def __iter__(self) -> Iterator[Block]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Block: ...


class LatestMessage(Message):
    """The greatest `num_versions` versions."""

    num_versions: int


class SpecificMessage(Message):
    """These versions."""

    versions: MutableSequence[int]


class ModelVersionPolicy(Message):
    """One of `latest`, `all`, `specific`."""

    latest: LatestMessage
    all: Message
    specific: SpecificMessage


class Pinned(Message):
    """A PinnedMemoryBuffer."""

    enable: bool


class GraphMessage(Message):
    """The optimisation of the graph."""

    level: int


class Accelerator(Message):
    """Another way of running a model, by its backend's name for it."""

    name: str
    parameters: Mapping[str, str]


class ExecutionAccelerators(Message):
    """Accelerators in the order in which they are tried, for instances on GPUs and on the CPU."""

    gpu_execution_accelerator: Blocks[Accelerator]
    cpu_execution_accelerator: Blocks[Accelerator]


class ModelOptimizationPolicy(Message):
    """The optimisation block; the graph's level and the accelerators have an effect here."""

    graph: GraphMessage
    execution_accelerators: ExecutionAccelerators
    input_pinned_memory: Pinned
    output_pinned_memory: Pinned


class ModelQueuePolicy(Message):
    """Rules of one priority level; 0 means none or any."""

    timeout_action: int
    default_timeout_microseconds: int
    allow_timeout_override: bool
    max_queue_size: int


class ModelDynamicBatching(Message):
    """The dynamic scheduler."""

    preferred_batch_size: MutableSequence[int]
    max_queue_delay_microseconds: int
    preserve_ordering: bool
    priority_levels: int
    default_priority_level: int
    default_queue_policy: ModelQueuePolicy
    priority_queue_policy: MutableMapping[int, ModelQueuePolicy]


class EnsembleStep(Message):
    """One model of an ensemble; version -1 is the latest."""

    model_name: str
    model_version: int
    input_map: Mapping[str, str]
    output_map: Mapping[str, str]


class ModelEnsembling(Message):
    """A graph of models."""

    step: Blocks[EnsembleStep]
    max_inflight_requests: int


class ControlMessage(Message):
    """A control input; `kind` is one of the CONTROL numbers. It has one of the three pairs, or a data type."""

    kind: int
    int32_false_true: MutableSequence[int]
    fp32_false_true: MutableSequence[float]
    bool_false_true: MutableSequence[bool]
    data_type: int


class ControlInput(Message):
    """An input that the server adds."""

    name: str
    control: Blocks[ControlMessage]


class StrategyDirect(Message):
    """A slot per sequence."""

    max_queue_delay_microseconds: int
    minimum_slot_utilization: float


class StrategyOldest(Message):
    """The strategy that serves the sequence that has waited longest."""

    max_candidate_sequences: int
    preferred_batch_size: MutableSequence[int]
    max_queue_delay_microseconds: int
    preserve_ordering: bool


class InitialState(Message):
    """The first value of a state: one of two sources."""

    data_type: int
    dims: MutableSequence[int]
    zero_data: bool
    data_file: str
    name: str


class StateMessage(Message):
    """A tensor that the server keeps between the requests of a sequence."""

    input_name: str
    output_name: str
    data_type: int
    dims: MutableSequence[int]
    initial_state: Blocks[InitialState]


class ModelSequenceBatching(Message):
    """The sequence scheduler; one of `direct` (the default) and `oldest`."""

    max_sequence_idle_microseconds: int
    control_input: Blocks[ControlInput]
    direct: StrategyDirect
    oldest: StrategyOldest
    state: Blocks[StateMessage]
    iterative_sequence: bool


class RateResource(Message):
    """So much of a resource; `global` is no name in Python, and is asked for by `getattr`."""

    name: str
    count: int


class ModelRateLimiter(Message):
    """The resources that an instance needs while it runs."""

    resources: Blocks[RateResource]
    priority: int


class ModelResponseCache(Message):
    """Are answers kept?"""

    enable: bool


class ModelInstanceGroup(Message):
    """Alike instances; `kind` is one of the KIND numbers."""

    name: str
    kind: int
    count: int
    gpus: MutableSequence[int]
    rate_limiter: ModelRateLimiter


class ModelParameter(Message):
    """A parameter's value."""

    string_value: str


class ModelTransactionPolicy(Message):
    """The number of responses to a request: one, or any number."""

    decoupled: bool


class WarmupInputMessage(Message):
    """The data of one input of a warm-up run: one of three sources."""

    data_type: int
    dims: MutableSequence[int]
    zero_data: bool
    random_data: bool
    input_data_file: str


class ModelWarmup(Message):
    """One warm-up run."""

    name: str
    batch_size: int
    inputs: Mapping[str, WarmupInputMessage]
    count: int


class MetricIdentifier(Message):
    """A metric, by its name for Prometheus."""

    family: str


class HistogramOptions(Message):
    """Upper bounds, in the metric's own unit."""

    buckets: Sequence[float]


class MetricControl(Message):
    """The way in which one metric is counted."""

    metric_identifier: MetricIdentifier
    histogram_options: HistogramOptions


class ModelMetricsMessage(Message):
    """The ways in which the model's metrics are counted."""

    metric_control: Blocks[MetricControl]


class ModelConfigMessage(Message):
    """A whole config.pbtxt."""

    name: str
    platform: str
    backend: str
    runtime: str
    version_policy: ModelVersionPolicy
    max_batch_size: int
    input: Blocks[ModelInput]
    output: Blocks[ModelOutput]
    batch_input: Blocks[BatchInputMessage]
    batch_output: Blocks[BatchOutputMessage]
    optimization: ModelOptimizationPolicy
    dynamic_batching: ModelDynamicBatching
    sequence_batching: ModelSequenceBatching
    ensemble_scheduling: ModelEnsembling
    instance_group: Blocks[ModelInstanceGroup]
    default_model_filename: str
    metric_tags: Mapping[str, str]
    model_metrics: ModelMetricsMessage
    parameters: MutableMapping[str, ModelParameter]
    model_warmup: Blocks[ModelWarmup]
    model_transaction_policy: ModelTransactionPolicy
    response_cache: ModelResponseCache
