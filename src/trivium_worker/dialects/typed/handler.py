"""The handler dialect of Trivium's own: a typed class, whose hints say what `predict` takes and returns.

Its file imports its marks from `trivium_handler`, one file that lies beside this package and that every worker has.
"""

import inspect
import logging
import os
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import trivium_worker
from trivium_worker.dialects import run_file
from trivium_worker.dialects.typed.bodies import BYTES, LINES, TEXT, Bodies
from trivium_worker.dialects.typed.kinds import Body, Many, Plain, Record, Unfit, listed
from trivium_worker.dialects.typed.signature import OUTPUT, Signature
from trivium_worker.dialects.typed.tensors import Array
from trivium_worker.runtime import faults
from trivium_worker.runtime.adapter import Adapter, Host, Setup
from trivium_worker.wire.values import END, Failure, Item, Outcome, Part, Raw, frameless

MARKS = "trivium_handler"
_METHOD = "predict"


def marks() -> ModuleType:
    """Return the module of the marks, which every handler can import from now on, whatever its interpreter has."""
    known = sys.modules.get(MARKS)
    if known is not None:
        return known
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(trivium_worker.__file__))), MARKS)
    return run_file(os.path.join(folder, "__init__.py"), MARKS, [folder])


def load_class(root: str, entry: str, name: str) -> type:
    """Run the file and return its class: of this name, or the only one that has a `predict`. Failure ("load failed")
    where there is none; what the file raises passes.
    """
    marks()
    path = os.path.join(root, entry)
    stem = os.path.splitext(entry)[0]
    is_taken = stem in sys.modules or stem in sys.stdlib_module_names
    try:
        module = run_file(path, f"trivium_file_{stem}" if is_taken else stem)
    except FileNotFoundError:
        raise Failure(f"There is no file {path}.", "load failed") from None
    own = {
        key: one
        for key, one in vars(module).items()
        if isinstance(one, type)
        and one.__module__ == module.__name__
        and hasattr(one, _METHOD)
        and key[0] != "_"
    }
    if not name and len(own) == 1:
        return next(iter(own.values()))
    found = getattr(module, name, None) if name else None
    if isinstance(found, type) and hasattr(found, _METHOD):
        return found
    there = ", ".join(own) or "none"
    if name:
        what = f"is no class with a method {_METHOD}" if name in vars(module) else "is not there"
        raise Failure(
            f"{path}: {name} {what}. Classes with one that the file defines: {there}.", "load failed"
        )
    raise Failure(
        f"{path} defines {len(own) or 'no'} classes with a method {_METHOD}, and one is needed: {there}. Name the one "
        f"that is served, like {entry}:{next(iter(own), 'Sentiment')}, and let the names of others begin with _.",
        "load failed",
    )


def signature_of(made: type) -> Signature:
    """Return what a class says of its `predict`. Failure ("load failed")."""
    static = inspect.getattr_static(made, _METHOD)
    name = f"{made.__name__}.{_METHOD}"
    if isinstance(static, (staticmethod, classmethod)):
        return Signature(getattr(made, _METHOD), name, is_bound=True)
    if not callable(static):
        raise Failure(f"{name} is no function. Define it by def predict(self, ...).", "load failed")
    return Signature(static, name)


class TypedAdapter(Adapter):
    """One object of the handler's class. Constructing it runs the file, and `setup` where the class has one."""

    def __init__(self, setup: Setup, host: Host) -> None:
        logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
        made = load_class(setup.root, setup.entry, setup.function)
        self.signature = signature_of(made)
        self.bodies = Bodies(setup.model, self.signature)
        self.handler: Any = made()
        self.trace: ContextVar[str] = marks().TRACEPARENT
        self._prepare(setup)
        self.predict = getattr(self.handler, _METHOD)

    def run(self, items: list[Item]) -> list[Outcome]:
        """See `Adapter`. What cannot be read of a batch fails alone."""
        if not self.signature.is_batched:
            return [self._outcome(item) for item in items]
        outcomes: dict[int, Outcome] = {}
        groups: dict[Any, list[tuple[Item, dict[str, Any]]]] = {}
        for item in items:
            try:
                values = self.bodies.values(item)
            except Failure as error:
                outcomes[item.number] = frameless(error)
            else:
                shapes = tuple(getattr(values[one.name], "shape", ())[1:] for one in self.signature.inputs)
                groups.setdefault(shapes, []).append((item, values))
        for group in groups.values():
            outcomes.update(self._run_together(group))
        return [outcomes[item.number] for item in items]

    def close(self) -> None:
        """See `Adapter`: the handler's own `close`, if it has one."""
        close = getattr(self.handler, "close", None)
        if callable(close):
            close()

    def _prepare(self, setup: Setup) -> None:
        prepare = getattr(self.handler, "setup", None)
        if prepare is None:
            return
        takes = inspect.signature(prepare).parameters
        if "device" in takes:
            words = "setup gets a context, and has a parameter device. Write setup(self, context), and context.device."
            raise Failure(words, "load failed")
        made = prepare(_context(setup)) if takes else prepare()
        if inspect.isawaitable(made):
            self._await(made)

    def _await(self, made: Any) -> None:
        made.close()
        words = "setup is an async function, and predict is none. Define both with async def, or neither."
        raise Failure(words, "load failed")

    def _outcome(self, item: Item) -> Outcome:
        try:
            self.trace.set(item.context)
            made = self.predict(**self.bodies.values(item))
            if self.signature.streams:
                return self._streamed(item, made)
            return self.bodies.answer(made, isinstance(item.payload, Raw))
        except Exception as error:
            return failure_of(error)

    def _streamed(self, item: Item, pieces: Any) -> Outcome:
        """Send each piece while the next one is made; what is raised behind one ends the stream with an error."""
        as_body, has_begun = isinstance(item.payload, Raw), False
        try:
            for piece in pieces:
                if item.is_cancelled:
                    break
                item.send(self.bodies.answer(piece, as_body))
                has_begun = True
        finally:
            close = getattr(pieces, "close", None)
            if callable(close):
                close()
        return END if has_begun or not as_body else self.empty()

    def empty(self) -> Raw:
        """Return the body of a stream without pieces."""
        kind = self.signature.answer
        media = (
            BYTES
            if isinstance(kind, Body)
            else TEXT
            if isinstance(kind, Plain) and kind.type is str
            else LINES
        )
        return Raw([Part(b"", media)])

    def _run_together(self, group: Sequence[tuple[Item, dict[str, Any]]]) -> dict[int, Outcome]:
        try:
            values = {
                one.name: _joined([each[one.name] for _, each in group]) for one in self.signature.inputs
            }
            counts = [len(next(iter(each.values()))) for _, each in group]
            self.trace.set(next((item.context for item, _ in group if item.context), ""))
            made = self._parts(self.predict(**values), sum(counts))
        except Exception as error:
            failure = failure_of(error)
            return {item.number: failure for item, _ in group}
        outcomes: dict[int, Outcome] = {}
        begin = 0
        for (item, _), count in zip(group, counts, strict=True):
            outcomes[item.number] = self._of_rows(made, begin, begin + count, isinstance(item.payload, Raw))
            begin += count
        return outcomes

    def _parts(self, made: Any, count: int) -> dict[str, Any]:
        """Return the rows of each output. Failure where they are not as many as went in."""
        found: dict[str, Any] = {OUTPUT: made}
        try:
            if self.signature.answers_record:
                assert isinstance(self.signature.answer, Record), "it was judged so"
                found = {name: one for name, _, one in self.signature.answer.parts(made, OUTPUT)}
            for name, kind in self.signature.outputs:
                is_list = isinstance(kind, Many)
                found[name] = (
                    listed(found[name], name, kind.said) if is_list else _array(kind, found[name], name)
                )
        except Unfit as error:
            raise self.bodies.misreturned(error) from None
        for name, rows in found.items():
            if len(rows) != count:
                raise Failure(
                    f"predict returned {len(rows)} rows for {name} of a batch of {count}; it must return one for each, "
                    "in their order."
                )
        return found

    def _of_rows(self, made: dict[str, Any], begin: int, end: int, as_body: bool) -> Outcome:
        for rows in made.values():
            for one in rows[begin:end] if isinstance(rows, (list, tuple)) else ():
                if isinstance(one, Exception):
                    return failure_of(one)
        try:
            return self.bodies.rows(made, begin, end, as_body)
        except Exception as error:
            return failure_of(error)


def failure_of(error: Exception) -> Failure:
    """Return what a request gets whose `predict` raised this."""
    if isinstance(error, marks().Refusal):
        status = int(getattr(error, "status", 500))
        return Failure(str(error), "invalid" if status < 500 else "model failed", status)
    return faults.failure_of(error)


def _context(setup: Setup) -> Any:
    device = f"cuda:{setup.device_id}" if setup.device == "gpu" else "cpu"
    return marks().Context(
        setup.model, setup.version, setup.root, device, setup.instance, dict(setup.parameters)
    )


def _joined(rows: Sequence[Any]) -> Any:
    if len(rows) == 1:
        return rows[0]
    if isinstance(rows[0], list):
        return [one for each in rows for one in each]
    import numpy

    return numpy.concatenate(rows)


def _array(kind: Any, value: Any, where: str) -> Any:
    assert isinstance(kind, Array), "rows are a list or an array"
    return kind.array_of(value, where)
