"""Decides what a graph of models needs, and whether it can run at all. Pure.

The same rules order the loading, refuse what cannot run, and say which steps a request needs. Source of the rules:
sheet "triton", sections 2.5 and 7.8. It knows specs, and neither loaded models nor requests.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from trivium.types.findings import Finding, Severity
from trivium.types.schedules import Graph, Step
from trivium.types.spec import InvalidModel, ModelSpec, Origin, StandingCall, TensorSpec, version_order

Members = Mapping[int, ModelSpec]
"""Position of a step -> the spec of its model."""


def members(spec: ModelSpec) -> tuple[str, ...]:
    """The models of a graph, each once, in order of its steps; of another model those that its code calls."""
    if not isinstance(spec.scheduling, Graph):
        return spec.calls
    return spec.scheduling.models


def waves(needs: Mapping[str, Collection[str]]) -> tuple[list[list[str]], list[str]]:
    """Return which models can be loaded together, wave after wave, each after all that it `needs`; and those that
    never can, because they need one another in a circle. What is not a key of `needs` is taken to be there.
    """
    left = dict(needs)
    order: list[list[str]] = []
    while left:
        wave = [name for name, wanted in left.items() if not any(other in left for other in wanted)]
        if not wave:
            return order, list(left)
        order.append(wave)
        for name in wave:
            del left[name]
    return order, []


MemberCall = tuple[str, str, StandingCall]
"""Model and version of a step, and a call that it needs there."""


def member_calls(spec: ModelSpec) -> tuple[MemberCall, ...]:
    """Return the standing calls that the steps of a graph need, each once; none of a model of its own."""
    graph = spec.scheduling
    if not isinstance(graph, Graph):
        return ()
    calls = {call.topic: call for call in spec.standing}
    found = {(step.model, step.version, step.adapter) for step in graph.steps if step.adapter in calls}
    return tuple((model, version, calls[topic]) for model, version, topic in sorted(found))


def circle(name: str, needs: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """The way from a model through those it needs back to it: `a -> b -> a`; empty if there is none."""
    ways: list[tuple[str, ...]] = [(name,)]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        for following in needs.get(way[-1], ()):
            if following == name:
                return (*way, name)
            if following not in seen:
                seen.add(following)
                ways.append((*way, following))
    return ()


def circular(spec: ModelSpec, way: Sequence[str]) -> Finding:
    """Return what is wrong with a graph that needs itself."""
    hint = "Let one of them do without the other."
    return _fault(
        spec,
        "scheduling.steps",
        f"{' -> '.join(way)}: each needs the next",
        "graphs that do not need themselves",
        hint,
    )


def needed(steps: Sequence[Step], wanted: Collection[str]) -> tuple[frozenset[int], frozenset[str]]:
    """The steps without which the wanted tensors of the graph cannot be had, and all tensors that those take part in:
    a request runs no others.
    """
    tensors = set(wanted)
    chosen: set[int] = set()
    is_growing = True
    while is_growing:
        fresh = {
            i for i, step in enumerate(steps) if i not in chosen and not tensors.isdisjoint(step.results)
        }
        for i in fresh:
            tensors.update(steps[i].sources)
        chosen |= fresh
        is_growing = bool(fresh)
    return frozenset(chosen), frozenset(tensors)


def behind(steps: Sequence[Step], i: int) -> frozenset[int]:
    """The steps that need what step `i` gives, directly or through others."""
    tensors = set(steps[i].results)
    found: set[int] = set()
    is_growing = True
    while is_growing:
        fresh = {k for k, step in enumerate(steps) if k not in found and not tensors.isdisjoint(step.sources)}
        for k in fresh:
            tensors.update(steps[k].results)
        found |= fresh
        is_growing = bool(fresh)
    return frozenset(found)


def faults(spec: ModelSpec, there: Members) -> tuple[Finding, ...]:
    """Everything that keeps a graph from running with these models; nothing for one that can. Steps whose model is
    not in `there` are not looked into.
    """
    graph = spec.scheduling
    assert isinstance(graph, Graph)
    found = [*_flow(spec, graph)]
    there = {i: member for i, member in there.items() if not graph.steps[i].gives}
    for i, member in there.items():
        found += _maps(spec, graph.steps[i], i, member)
        found += _batches(spec, i, member)
    found += _tensors(spec, graph, there)
    return tuple(found)


def joined(spec: ModelSpec, graph: Graph, there: Members) -> ModelSpec:
    """A graph with what its members bring: it answers in several parts if one of them does, or if it says so itself; an
    output without labels of its own has those of the member that makes it, and a step can do without what its member
    takes as optional.
    """
    labels = {
        graph.steps[i].outputs[tensor.name]: tensor.labels
        for i, member in there.items()
        for tensor in member.outputs
        if tensor.name in graph.steps[i].outputs
    }
    outputs = tuple(
        replace(tensor, labels=tensor.labels or labels.get(tensor.name, ())) for tensor in spec.outputs
    )
    steps = tuple(
        replace(step, may_lack=_optional(step, there[i])) if i in there else step
        for i, step in enumerate(graph.steps)
    )
    streams = spec.streams or any(member.streams for member in there.values())
    return replace(spec, outputs=outputs, streams=streams, scheduling=replace(graph, steps=steps))


def _optional(step: Step, member: ModelSpec) -> tuple[str, ...]:
    """The tensors of the graph that a step takes for optional inputs alone."""
    required = {step.inputs.get(tensor.name) for tensor in member.inputs if not tensor.optional}
    optional = {step.inputs.get(tensor.name) for tensor in member.inputs if tensor.optional}
    return tuple(sorted(name for name in optional - required if name is not None))


def can_lack(steps: Sequence[Step], name: str) -> bool:
    """Can every step that takes a tensor of the graph do without it?"""
    return all(name in step.may_lack for step in steps if name in step.sources)


def examined(specs: Sequence[ModelSpec]) -> tuple[list[ModelSpec], list[InvalidModel]]:
    """Return, of models that would be served together, those that can, and the graphs that cannot, each with all its
    faults.
    """
    good, broken = list(specs), []
    is_settled = False
    while not is_settled:
        is_settled = True
        for spec in [spec for spec in good if isinstance(spec.scheduling, Graph)]:
            findings = _faults_among(spec, good)
            if findings:  # it may be a member of another
                good.remove(spec)
                broken.append(InvalidModel(spec.name, spec.root, findings))
                is_settled = False
    return good, broken


def _faults_among(spec: ModelSpec, good: Sequence[ModelSpec]) -> tuple[Finding, ...]:
    assert isinstance(spec.scheduling, Graph)
    there: dict[int, ModelSpec] = {}
    lacking: list[Finding] = []
    for i, step in enumerate(spec.scheduling.steps):
        if not step.model:
            continue
        fit = [one for one in good if one.name == step.model and step.version in ("", one.version)]
        if fit:
            there[i] = max(fit, key=lambda one: version_order(one.version))
            continue
        which = f"{step.model} version {step.version}" if step.version else step.model
        versions = sorted({one.version for one in good if one.name == step.model}, key=version_order)
        hint = (
            f"Name version {' or '.join(versions)}, or the latest."
            if versions
            else "Correct the step, or serve that model, too: name its folder, or the folder that holds both."
        )
        key = f"scheduling.steps[{i}].model"
        lacking.append(
            _fault(spec, key, f"the model {which}, which cannot be served", "a model that serves", hint)
        )
    return (*lacking, *faults(spec, there))


def _flow(spec: ModelSpec, graph: Graph) -> Iterator[Finding]:
    """Does each tensor come from just one place, and does everything get there?"""
    sources: dict[str, str] = dict.fromkeys(_given(spec, graph), "an input of the graph")
    for i, step in enumerate(graph.steps):
        word = "value" if step.gives else "tensor"
        for name in step.results:
            if name in sources:
                found = f"the {word} {name} from {step.name}, which is {sources[name]} already"
                yield _fault(
                    spec,
                    f"scheduling.steps[{i}].outputs",
                    found,
                    f"each {word} from one place",
                    "Rename one.",
                )
            sources.setdefault(name, f"an output of {step.name}")
    runs = _runnable(graph, set(_given(spec, graph)))
    for i, step in enumerate(graph.steps):
        if i not in runs:
            lacking = ", ".join(sorted(set(step.sources) - sources.keys()))
            found = f"{step.name} never runs: " + (
                f"nothing gives {lacking}" if lacking else "it waits for its own results"
            )
            hint = "Let an input of the graph or an earlier step give what it takes."
            yield _fault(spec, f"scheduling.steps[{i}].inputs", found, "inputs that come to be", hint)
    for name in (graph.output,) if graph.output else [tensor.name for tensor in spec.outputs]:
        if name not in sources:
            found = f"the output {name}, which no step gives"
            hint = "Name it among the outputs of a step, or remove it."
            yield _fault(spec, "outputs", found, "an output of a step", hint)
    taken = {tensor for step in graph.steps for tensor in step.sources}
    for tensor_spec in spec.inputs:
        if tensor_spec.name not in taken:
            found = f"the input {tensor_spec.name}, which no step takes"
            yield _fault(
                spec,
                "inputs",
                found,
                "an input of a step",
                "Name it among the inputs of a step, or remove it.",
            )


def _given(spec: ModelSpec, graph: Graph) -> tuple[str, ...]:
    return (graph.input,) if graph.input else tuple(tensor.name for tensor in spec.inputs)


def _runnable(graph: Graph, there: set[str]) -> set[int]:
    runs: set[int] = set()
    is_growing = True
    while is_growing:
        fresh = {i for i, step in enumerate(graph.steps) if i not in runs and there.issuperset(step.sources)}
        for i in fresh:
            there.update(graph.steps[i].results)
        runs |= fresh
        is_growing = bool(fresh)
    return runs


def _maps(spec: ModelSpec, step: Step, i: int, member: ModelSpec) -> Iterator[Finding]:
    """Do the maps speak of inputs and outputs that the member has? One that declares none takes and gives any."""
    for word, map_, tensors in (
        ("input", step.inputs, member.inputs),
        ("output", step.outputs, member.outputs),
    ):
        names = {tensor.name for tensor in tensors}
        for name in map_ if names else ():
            if name not in names:
                found = f"the {word} {name}, which {step.model} does not have"
                expected = f"one of {', '.join(sorted(names))}"
                yield _fault(spec, f"scheduling.steps[{i}].{word}s", found, expected, "Correct the key.")
    for tensor in member.inputs:
        if tensor.name not in step.inputs and not tensor.optional:
            found = f"nothing for the input {tensor.name} of {step.model}"
            hint = f"Name a tensor of the graph for its input {tensor.name}."
            yield _fault(spec, f"scheduling.steps[{i}].inputs", found, "every input of the model", hint)


def _batches(spec: ModelSpec, i: int, member: ModelSpec) -> Iterator[Finding]:
    ours, theirs = spec.batching, member.batching
    if ours.batch_axis and theirs.batch_axis and ours.max_rows > theirs.max_rows:
        found = f"{ours.max_rows} rows at once, while {member.name} takes {theirs.max_rows}"
        hint = f"Let it take {theirs.max_rows} rows at most, or that model more."
        yield _fault(spec, f"scheduling.steps[{i}].model", found, f"at most {theirs.max_rows}", hint)


def _tensors(spec: ModelSpec, graph: Graph, there: Members) -> Iterator[Finding]:
    """Is each tensor of one datatype and shape, wherever it comes from and goes to? Sizes of -1 fit any."""
    seen: dict[str, tuple[str, TensorSpec, tuple[int, ...]]] = {}
    for place, name, tensor, has_axis in _ends(spec, graph, there):
        if tensor.open:
            continue
        whole = (-1, *tensor.dims) if has_axis else tensor.dims
        if name not in seen:
            seen[name] = place, tensor, whole
            continue
        first, other, dims = seen[name]
        if tensor.datatype is not other.datatype:
            found = f"the tensor {name} is {other.datatype.wire} for {first} and {tensor.datatype.wire} for {place}"
            yield _fault(
                spec, "scheduling.steps", found, "one datatype", "Put a model between them that converts."
            )
        elif not _meet(whole, dims):
            found = f"the tensor {name} is {list(dims)} for {first} and {list(whole)} for {place}"
            hint = "Put a model between them that reshapes; -1 fits any size, and a batching model has it in front."
            yield _fault(spec, "scheduling.steps", found, "one shape", hint)


def _ends(spec: ModelSpec, graph: Graph, there: Members) -> Iterable[tuple[str, str, TensorSpec, bool]]:
    for tensor in (*spec.inputs, *spec.outputs):
        yield "the graph", tensor.name, tensor, spec.batching.batch_axis
    for i, member in there.items():
        step = graph.steps[i]
        for map_, tensors in ((step.inputs, member.inputs), (step.outputs, member.outputs)):
            for tensor in tensors:
                if tensor.name in map_:
                    yield member.name, map_[tensor.name], tensor, member.batching.batch_axis


def _meet(ours: tuple[int, ...], theirs: tuple[int, ...]) -> bool:
    return len(ours) == len(theirs) and all(-1 in (a, b) or a == b for a, b in zip(ours, theirs, strict=True))


def _fault(spec: ModelSpec, field: str, found: str, expected: str, hint: str) -> Finding:
    """An error in the words of the file that the field comes from, so far as the spec knows where that is."""
    whole = spec.origin.get("scheduling", Origin(str(spec.root), field))
    exact = spec.origin.get(field, Origin(whole.file, field))
    line = exact.line or whole.line
    return Finding(Severity.ERROR, whole.file, line, exact.key, found, expected, hint)
