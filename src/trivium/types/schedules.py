"""Schedules: how requests are arranged other than one by one: sequences on one instance, graphs of several models.

Values of a spec, beside `spec.Dynamic`; a format fills them in, the core's schedulers and graphs carry them out.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum

from trivium.types.datatype import DataType
from trivium.types.warmups import WarmupInput


class Strategy(Enum):
    """Names how the requests of several sequences share an execution."""

    DIRECT = "direct"  # a sequence owns a row of its instance's batch until it ends
    OLDEST = "oldest"  # of the sequences that an instance serves, those whose request has waited longest go together


class Signal(Enum):
    """Names what a control input tells the model about a request's place in its sequence."""

    START = "start"
    END = "end"
    READY = "ready"  # is there a request in this row?
    ID = "id"


@dataclass(frozen=True, slots=True)
class Control:
    """An input that the core adds to each request: one element per row. `no` and `yes` are its values, of an ID
    the value of a row without a request alone.
    """

    name: str
    signal: Signal
    datatype: DataType
    no: int | float | bool | bytes = 0
    yes: int | float | bool = 1


@dataclass(frozen=True, slots=True)
class State:
    """Describes what the core keeps of a sequence between its requests: the model gives it as `output` and gets it
    with the next request as `first.name`. With the first one it gets `first`. `is_shown`: clients get the output, too.
    """

    output: str
    datatype: DataType
    dims: tuple[int, ...]
    first: WarmupInput
    is_shown: bool = False


@dataclass(frozen=True, slots=True)
class SequenceProperties:
    """Names the properties of a body that say which sequence it belongs to, and whether that starts or ends with it:
    "true", in any capitals. An answer names by the last one sequences that are over, with ; between them.
    """

    id: str
    starts: str
    ends: str


@dataclass(frozen=True, slots=True)
class Unannounced:
    """Rules of sequences that begin with whatever request of them comes first, announced or not: what is lost, over or
    was never there begins anew. A request that names none gets one whose id begins with `prefix`.

    At most `most` are open at once. Behind the request of a sequence that runs, or is the next to run, at most
    `most_waiting` wait. One that is `life_seconds` old is over once nothing of it waits; None: at no age.
    """

    properties: SequenceProperties
    prefix: str
    most: int
    most_waiting: int
    life_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Sequence:
    """The sequence scheduler: requests with one sequence id run in order on one instance, which may keep state.

    An instance serves `candidates` sequences at a time; one that idles for `idle_seconds` is given up. A batch waits
    at most `max_delay` seconds for a preferred number of rows (oldest), or until so large a part of the candidates
    has a request (direct: `utilization`, from 0 to 1). `is_iterative`: the model may ask for a request to be run again,
    and one without an id is a sequence of its own. Without `unannounced` rules a client has to say that a sequence
    starts. Of a sequence that `overlaps` all requests are handed to its instance in their order, while earlier ones are
    in work there.
    """

    strategy: Strategy = Strategy.DIRECT
    idle_seconds: float = 1.0
    candidates: int = 1
    controls: tuple[Control, ...] = ()
    max_delay: float = 0.0
    preferred_rows: tuple[int, ...] = ()
    utilization: float = 0.0
    states: tuple[State, ...] = ()
    is_iterative: bool = False
    unannounced: Unannounced | None = None
    overlaps: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a graph: a model, where an empty `version` is the greatest that serves, or a `function` that graphs
    have of their own (`codecs.graph_functions`).

    It works on tensors: `inputs` maps each of its inputs to a tensor of the graph, `outputs` each output that is used.
    Or on payloads as a whole: it takes the values `takes` of the graph, and gives the value `gives`. A model takes one,
    or with `is_listed` what there is as a list. `adapter` is the standing call that it needs, if any; without one a
    model that takes the request itself needs what that names, unless it says not `passes_adapter`. Of the tensors that
    `may_lack` it runs without those that an earlier step has left out; the core fills them in, by the model's inputs.
    """

    model: str
    version: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    takes: tuple[str, ...] = ()
    gives: str = ""
    is_listed: bool = False
    function: str = ""
    adapter: str = ""
    passes_adapter: bool = True
    may_lack: tuple[str, ...] = field(default=(), compare=False)

    @property
    def sources(self) -> Collection[str]:
        """Return the values of the graph without which it cannot run."""
        return self.takes if self.gives else self.inputs.values()

    @property
    def results(self) -> Collection[str]:
        """Return the values of the graph that it gives."""
        return (self.gives,) if self.gives else self.outputs.values()

    @property
    def name(self) -> str:
        """Return what people call it."""
        return self.model or self.function


@dataclass(frozen=True, slots=True)
class Graph:
    """No model of its own: a request runs through these, in the order in which their inputs come to be. Of a step that
    answers in several parts the steps behind it run for each of them, for at most `in_flight` at once per request. Of
    all requests together each step has at most `step_calls` in work; 0 is no bound.

    The request's tensors and those of the answer are values of the graph under their own names; or the whole payloads
    are, under the names `input` and `output`.
    """

    steps: tuple[Step, ...]
    in_flight: int = 16
    input: str = ""
    output: str = ""
    step_calls: int = 0

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models of its steps, each once."""
        return tuple(dict.fromkeys(model for model, _ in self.places))

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """Return the same with the version that each step names."""
        return tuple(dict.fromkeys((step.model, step.version) for step in self.steps if step.model))
