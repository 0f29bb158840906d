"""Tells whose handler a model.py holds by its text: the code is parsed and never run.

Source: section 8.1 of the spec sheets `djl`, `torchserve` and `triton`. Several systems call their file model.py; by
what it defines they can be told apart.
"""

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class ArgumentCounts:
    """Says with how many arguments a function may be called; without `most` with any number from `least` on."""

    least: int
    most: int | None

    def fits(self, count: int) -> bool:
        """Tell whether it may be called with so many."""
        return self.least <= count and (self.most is None or count <= self.most)

    def __str__(self) -> str:
        if self.most is None:
            return f"{self.least} or more"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"


LONGEST = 2**20
"""Characters of a file that is looked into."""

_MAKERS = frozenset({"globals", "vars", "locals", "setattr", "exec", "__getattr__"})
"""Names by which a module makes further names as it runs."""


class HandlerKind(Enum):
    """The system whose handler a file holds. UNKNOWN: it cannot be parsed, or defines none of them at its top."""

    DJL = "a function of one argument"
    TORCHSERVE = "a class with handle(self, data, context), or handle(data, context)"
    TRITON = "a class TritonPythonModel"
    UNKNOWN = "nothing known"


def kind_of(text: str, function: str = "handle") -> HandlerKind:
    """Return whose handler this module holds. `function` is the name that DJL would call."""
    module = parsed(text)
    if module is None:
        return HandlerKind.UNKNOWN
    found = HandlerKind.UNKNOWN
    for node in _statements(module):
        match node:
            case ast.ClassDef(name="TritonPythonModel"):
                return HandlerKind.TRITON
            case ast.ClassDef() if _is_torchserve_class(node):
                found = HandlerKind.TORCHSERVE
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name == function:
                return HandlerKind.TORCHSERVE if _required(node.args) > 1 else HandlerKind.DJL
            case ast.Assign() if any(isinstance(t, ast.Name) and t.id == function for t in node.targets):
                return HandlerKind.DJL
            case ast.ImportFrom() if any((alias.asname or alias.name) == function for alias in node.names):
                return HandlerKind.DJL
    return found


def is_asynchronous(text: str, function: str) -> bool:
    """Is the function defined with `async def`?"""
    module = parsed(text)
    return module is not None and any(
        isinstance(node, ast.AsyncFunctionDef) and node.name == function for node in _statements(module)
    )


def counts_of(text: str, function: str) -> ArgumentCounts | None:
    """Return how many arguments a function takes, or an object of a class when it is called; None where the text does
    not tell.
    """
    module = parsed(text)
    for node in _statements(module) if module is not None else ():
        match node:
            case ast.FunctionDef(decorator_list=[]) if node.name == function:
                return _counts(node.args, 0)
            case ast.ClassDef(decorator_list=[]) if node.name == function:
                inner = [
                    one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__call__"
                ]
                return _counts(inner[-1].args, 1) if inner and not inner[-1].decorator_list else None
    return None


def _counts(arguments: ast.arguments, own: int) -> ArgumentCounts:
    positional = len(arguments.posonlyargs) + len(arguments.args) - own
    least = max(positional - len(arguments.defaults), 0)
    return ArgumentCounts(least, None if arguments.vararg else positional)


def names_of(text: str) -> frozenset[str] | None:
    """Return the names that a module has at its top; None where its text cannot tell: it cannot be parsed, takes all
    names of another module, or makes names as it runs.
    """
    module = parsed(text)
    if module is None:
        return None
    names: set[str] = set()
    for node in _statements(module):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.ImportFrom() | ast.Import():
                names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            case _:
                names.update(_bound(node))
    used = {node.id for node in ast.walk(module) if isinstance(node, ast.Name)}
    return None if "*" in names or (names | used) & _MAKERS else frozenset(names)


def imports_of(text: str) -> frozenset[str]:
    """Return the packages that a module imports, wherever in it; none of one that cannot be parsed."""
    found: set[str] = set()
    for node in ast.walk(parsed(text) or ast.Module([], [])):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return frozenset(found)


def _bound(node: ast.stmt) -> Iterator[str]:
    """Yield all names that a statement gives to anything, in its loops and cases, too."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield each.name
        elif isinstance(each, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in each.names)


def parsed(text: str) -> ast.Module | None:
    """Parse a module; None for what is none, or too long."""
    if len(text) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in somebody's text are no matter of ours
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _statements(module: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements at the top, and inside its if, try and with."""
    waiting = list(reversed(module.body))
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            inner = list(node.body)
            if isinstance(node, ast.If | ast.Try):
                inner += node.orelse
            if isinstance(node, ast.Try):
                inner += [statement for handler in node.handlers for statement in handler.body]
            waiting += reversed(inner)


def _is_torchserve_class(node: ast.ClassDef) -> bool:
    if any(getattr(base, "id", getattr(base, "attr", "")).endswith("BaseHandler") for base in node.bases):
        return True
    return any(
        isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
        and inner.name == "handle"
        and len(inner.args.posonlyargs) + len(inner.args.args) >= 3
        for inner in node.body
    )


def _required(arguments: ast.arguments) -> int:
    return len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
