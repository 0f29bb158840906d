"""The expressions of a workflow -> the steps of a graph, each value once, or all that keeps it from running.

Source: spec sheet `djl`, section 6.2. Pure. An expression is `[callable, argument...]`; an argument is the name of a
value or an expression itself. What is called is looked for among models, functions and built-ins, in that order.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trivium.codecs.near_names import near
from trivium.servers.djl.words.workflow_documents import Place, WorkflowText, shown
from trivium.types.findings import Change
from trivium.types.schedules import Graph, Step

IN, OUT = "in", "out"
BUILT_INS = ("id", "functionsApply", "ensemble", "adapter")
MOST_STEPS = 200
"""Calls of one workflow: each costs a look per request."""

_KEY = "workflow"


@dataclass(frozen=True, slots=True)
class ModelPlace:
    """Names the place where a model is served, and says whether a request's own adapter has to be known there."""

    model: str
    version: str
    checks_adapter: bool


@dataclass(frozen=True, slots=True)
class FunctionPlace:
    """Names the place where a function is served."""

    model: str
    version: str


@dataclass(frozen=True, slots=True)
class Callables:
    """Holds what expressions may call, by the names that they have for it; `adapters` has the model of each."""

    models: Mapping[str, ModelPlace]
    functions: Mapping[str, FunctionPlace]
    adapters: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names that may be called."""
        return (*self.models, *self.functions, *BUILT_INS)


class Expressions:
    """The expressions of one definition. Faults gather in its text."""

    def __init__(self, text: WorkflowText, callables: Callables) -> None:
        self._text = text
        self._callables = callables
        written = text.values.get(_KEY)
        is_plain = isinstance(written, dict) and all(isinstance(key, str) for key in written)
        self._written: Mapping[str, object] = written if isinstance(written, dict) and is_plain else {}
        self._steps: list[Step] = []
        self._places: dict[str, Place] = {}
        self._counts: dict[str, set[int]] = {}
        self._number = 0

    def graph(self) -> tuple[Graph, Mapping[str, frozenset[int]]]:
        """Return the steps that `out` needs, and the numbers of arguments with which each function is called. Where
        they are written `places` says afterwards.
        """
        if self._check():
            for name, value in self._written.items():
                self._expression(value, (_KEY, name), name)
            if len(self._steps) > MOST_STEPS:
                found = f"{len(self._steps)} calls"
                self._text.fault((_KEY,), found, f"at most {MOST_STEPS}", "Divide the workflow.")
            elif not self._text.has_faults:
                self._check_circles()
                self._check_lists()
        needed = self._needed()
        for name in self._written:
            if name not in needed:
                self._text.notice((_KEY, name), f"out does not need {name}, which is not computed")
        steps = tuple(step for step in self._steps if step.gives in needed)
        counts = {name: frozenset(found) for name, found in self._counts.items()}
        return Graph(steps, input=IN, output=OUT), counts

    def places(self, graph: Graph) -> list[Place]:
        """Return where each step of the graph is written."""
        return [self._places[step.gives] for step in graph.steps]

    def _check(self) -> bool:
        written = self._text.values.get(_KEY, {})
        if written and not self._written:
            found = shown(written)
            self._text.fault(
                (_KEY,), found, 'an object such as {"out": ["m", "in"]}, with texts as keys', "Correct it."
            )
            return False
        if OUT not in self._written:
            meant = near(OUT, self._written)
            hint = f"Did you mean {OUT} by {meant}?" if meant else "Define it."
            mends = (Change(f"{_KEY}.{meant}", name=OUT),) if meant else ()
            expected = 'an expression out, such as ["m", "in"]'
            self._text.fault((_KEY,), "no value out", expected, hint, *mends)
        if len(self._written) > MOST_STEPS:
            found = f"{len(self._written)} values"
            self._text.fault((_KEY,), found, f"at most {MOST_STEPS}", "Divide the workflow.")
            return False
        if IN in self._written:
            found = "a value in, which is the request itself"
            self._text.fault((_KEY, IN), found, "another name", "Rename it.")
        return True

    # -- one expression ------------------------------------------------------------------------------------

    def _expression(self, value: object, place: Place, gives: str) -> None:
        """Add the steps of an expression; the last one gives its value."""
        if not isinstance(value, list) or not value:
            hint, mends = "Correct it.", tuple[Change, ...]()
            if isinstance(value, str):
                wrapped = json.dumps(["id", value], ensure_ascii=False)
                hint, mends = f"Write {wrapped}.", (Change(value=wrapped),)
            expected = '[callable, argument...], such as ["m", "in"]'
            self._text.fault(place, shown(value), expected, hint, *mends)
            return
        name, *arguments = value
        if not isinstance(name, str):
            self._text.fault((*place, 0), shown(name), "the name of what is called", "Correct it.")
            return
        is_shadowed = name in self._callables.models or name in self._callables.functions
        if name == "functionsApply" and not is_shadowed:
            self._apply(arguments, place, gives)
        elif name == "adapter" and not is_shadowed:
            self._adapter(arguments, place, gives)
        else:
            takes = [self._argument(one, (*place, i)) for i, one in enumerate(arguments, 1)]
            self._call(name, takes, (*place, 0), gives)

    def _argument(self, value: object, place: Place) -> str:
        """Return the name of the value that an argument is."""
        if isinstance(value, list):
            gives = self._fresh()
            self._expression(value, place, gives)
            return gives
        if not isinstance(value, str):
            self._text.fault(place, shown(value), "the name of a value, or an expression", "Correct it.")
        elif value != IN and value not in self._written:
            meant = near(value, (IN, *self._written))
            hint = f"Did you mean {meant}?" if meant else f"Define it below {_KEY}."
            mends = _value(meant)
            if value in self._callables.names:
                hint, mends = f'To call it, write ["{value}", ...].', ()
            self._text.fault(place, f"no value {shown(value)}", f"one of {self._known()}", hint, *mends)
        else:
            return value
        return IN

    def _call(self, name: str, takes: Sequence[str], place: Place, gives: str) -> None:
        """Add the step of a call with these values."""
        if name in self._callables.models:
            model = self._callables.models[name]
            self._check_count(name, takes, place, 1, "a model takes")
            passes = model.checks_adapter
            self._add(
                Step(model.model, model.version, takes=tuple(takes[:1]), gives=gives, passes_adapter=passes),
                place,
            )
        elif name in self._callables.functions:
            function = self._callables.functions[name]
            self._counts.setdefault(name, set()).add(len(takes))
            self._add(
                Step(function.model, function.version, takes=tuple(takes), gives=gives, is_listed=True), place
            )
        elif name in ("id", "ensemble"):
            self._check_count(name, takes, place, 1, f"{name} takes")
            own = "same" if name == "id" else "average"
            self._add(Step("", "", takes=tuple(takes[:1]), gives=gives, function=own), place)
        else:
            meant = near(name, self._callables.names)
            hint = f"Did you mean {meant}?" if meant else "Name it among models or functions."
            known = ", ".join(self._callables.names)[:500]
            self._text.fault(place, f"nothing called {shown(name)}", f"one of {known}", hint, *_value(meant))

    def _apply(self, arguments: Sequence[object], place: Place, gives: str) -> None:
        """Add a call of each of some callables with the same values, and the list of their results."""
        names = arguments[0] if arguments else None
        if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
            expected = (
                'a list of names, and what they are called with: ["functionsApply", ["m1", "m2"], "in"]'
            )
            self._text.fault(place, shown(names), expected, "Correct it.")
            return
        if len(arguments) < 2:
            expected = "at least two arguments: a list of names, and a value"
            self._text.fault(place, f"{len(arguments)} argument", expected, "Add the value.")
            return
        takes = [self._argument(one, (*place, i)) for i, one in enumerate(arguments[1:], 2)]
        results = []
        for i, name in enumerate(names):
            results.append(self._fresh())
            self._call(name, takes, (*place, 1, i), results[-1])
        self._add(Step("", "", takes=tuple(results), gives=gives, function="list"), place)

    def _adapter(self, arguments: Sequence[object], place: Place, gives: str) -> None:
        """Add a call of an adapter's model."""
        if len(arguments) != 2:
            found = f"{len(arguments)} arguments"
            self._text.fault(place, found, 'two: ["adapter", "NAME", "in"]', "Correct it.")
            return
        name, value = arguments
        takes = self._argument(value, (*place, 2))
        known = self._callables.adapters
        if not isinstance(name, str) or name not in known:
            meant = near(str(name), known)
            hint = f"Did you mean {meant}?" if meant else "Define it below configs.adapters."
            expected = f"one of {', '.join(known) or 'configs.adapters, which is empty'}"
            self._text.fault((*place, 1), f"no adapter {shown(name)}", expected, hint, *_value(meant))
            return
        model = self._callables.models.get(known[name])
        if model is not None:
            self._add(Step(model.model, model.version, takes=(takes,), gives=gives, adapter=name), place)

    def _check_count(self, name: str, takes: Sequence[str], place: Place, count: int, who: str) -> None:
        if len(takes) != count:
            hint = "Let a function make one of them." if len(takes) > count else 'Name a value, such as "in".'
            self._text.fault(place, f"{len(takes)} arguments for {name}", f"{who} {count}", hint)

    def _add(self, step: Step, place: Place) -> None:
        self._places[step.gives] = place
        self._steps.append(step)

    def _fresh(self) -> str:
        """Return a name for a value that has none; it is not that of another."""
        self._number += 1
        while (name := f"#{self._number}") in self._written:
            self._number += 1
        return name

    def _known(self) -> str:
        return ", ".join((IN, *self._written))[:500]

    # -- all of them ---------------------------------------------------------------------------------------

    def _check_circles(self) -> None:
        """Note each value that needs itself, one circle once."""
        takes = {step.gives: step.takes for step in self._steps}
        done: set[str] = set()
        for name in takes:
            for circle in _circles(name, takes, done):
                shown_names = [one for one in circle if not one.startswith("#") or one in self._written]
                way = (
                    " -> ".join((*shown_names, shown_names[0])) if shown_names else "an expression of itself"
                )
                place: Place = (_KEY, shown_names[0]) if shown_names else (_KEY,)
                self._text.fault(
                    place, f"{way}: each needs the next", "no circle", "Let one do without the other."
                )

    def _check_lists(self) -> None:
        """Note lists where one payload is taken: by a model, or as the answer."""
        lists = {step.gives for step in self._steps if step.function == "list"}
        for _ in self._steps:  # names of the same list
            lists |= {
                step.gives for step in self._steps if step.function == "same" and step.takes[0] in lists
            }
        hint = "Let a function make one of them, or ensemble."
        for step in self._steps:
            if step.model and not step.is_listed and step.takes[0] in lists:
                found = f"a list for the model {step.model}"
                self._text.fault(self._places[step.gives], found, "one payload", hint)
        if OUT in lists:
            self._text.fault((_KEY, OUT), "a list as the answer", "one payload", hint)

    def _needed(self) -> frozenset[str]:
        takes = {step.gives: step.takes for step in self._steps}
        found = {OUT}
        waiting = [OUT]
        while waiting:
            fresh = set(takes.get(waiting.pop(), ())) - found
            found |= fresh
            waiting += fresh
        return frozenset(found)


def _value(meant: str) -> tuple[Change, ...]:
    """Return the change to a name that was meant, if there is one."""
    return (Change(value=json.dumps(meant, ensure_ascii=False)),) if meant else ()


def _circles(start: str, takes: Mapping[str, Sequence[str]], done: set[str]) -> Iterator[list[str]]:
    """Yield the circles met on the ways from a value; `done` are those that have been looked into."""
    way: list[tuple[str, list[str]]] = []
    if start not in done:
        way.append((start, list(takes[start])))
    while way:
        name, left = way[-1]
        if not left:
            done.add(name)
            way.pop()
            continue
        following = left.pop()
        names = [one for one, _ in way]
        if following in names:
            yield names[names.index(following) :]
        elif following in takes and following not in done:
            way.append((following, list(takes[following])))
