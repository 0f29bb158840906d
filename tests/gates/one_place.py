"""Holds rules that are one function to their one place, and fails where a second copy of one appears.

Each row of `RULES` is a rule: what in the source shows that somebody follows it by themselves, and the modules that
may, the first of which is its home.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.gates import source as files
from tests.gates.source import SOURCE

_WIDE = frozenset(
    {"OSError", "Exception", "BaseException", "FileNotFoundError", "PermissionError", "FileExistsError"}
)
_COMMANDS = (
    "trivium.servers.djl.command",
    "trivium.servers.torchserve.command",
    "trivium.servers.triton.command",
)
_OPERATORS = (
    "trivium.cli",
    "trivium.commands",
    *_COMMANDS,
    "trivium.demo",
    "trivium.log_writer",
    "trivium.access",
)
"""Rooms whose texts the operator alone reads."""

_OF_THE_SYSTEM = frozenset({"os", "mmap", "fcntl", "ctypes", "signal", "resource", "select"})
"""Modules with names that not every system has."""

Shows = Callable[[ast.AST], Iterator[int]]
"""Yields the lines of a tree in which something shows."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what is said of a second copy, what shows one, and the modules, or rooms, in which it may."""

    text: str
    shows: Shows
    homes: tuple[str, ...]


def imported(*names: str) -> Shows:
    """Return what finds imports of these modules, or of these names of any module."""

    def shows(tree: ast.AST) -> Iterator[int]:
        for node in ast.walk(tree):
            if (isinstance(node, ast.Import) and any(alias.name in names for alias in node.names)) or (
                isinstance(node, ast.ImportFrom)
                and (node.module in names or any(alias.name in names for alias in node.names))
            ):
                yield node.lineno

    return shows


def called(*names: str) -> Shows:
    """Return what finds calls of functions and methods of these names."""

    def shows(tree: ast.AST) -> Iterator[int]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in names:
                    yield node.lineno

    return shows


def taken(*names: str) -> Shows:
    """Return what finds these names of modules of the operating system."""

    def shows(tree: ast.AST) -> Iterator[int]:
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in _OF_THE_SYSTEM
                and node.attr.startswith(names)
            ):
                yield node.lineno

    return shows


def written(*values: object) -> Shows:
    """Return what finds these constants."""

    def shows(tree: ast.AST) -> Iterator[int]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and any(
                type(node.value) is type(one) and node.value == one for one in values
            ):
                yield node.lineno

    return shows


def command_lines(tree: ast.AST) -> Iterator[int]:
    """Find lists and tuples that have -m or -c among their words, as the command line of a Python program has."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List):
            words = [one.value for one in node.elts if isinstance(one, ast.Constant)]
            if len(node.elts) > 1 and any(word in ("-m", "-c") for word in words):
                yield node.lineno


def trusting(tree: ast.AST) -> Iterator[int]:
    """Find what runs a file as a module, and what tells transformers that it may."""
    for node in ast.walk(tree):
        is_told = isinstance(node, ast.keyword) and node.arg == "trust_remote_code"
        if is_told and not isinstance(
            node.value, ast.Subscript
        ):  # the engine's own options, as they are read
            yield node.value.lineno
    yield from called("exec_module", "spec_from_file_location", "run_path", "exec")(tree)


def raw_errors(tree: ast.AST) -> Iterator[int]:
    """Find texts that have a caught error as it prints itself, where that may be one of the system's, with a path."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.name and _is_wide(node.type):
            yield from _printed(node, node.name)
        elif isinstance(
            node, ast.JoinedStr
        ):  # f"{type(error).__name__}: {error}", wherever the error comes from
            shown = [one.value for one in node.values if isinstance(one, ast.FormattedValue)]
            of_classes = {ast.unparse(one.value.args[0]) for one in shown if _is_class_name(one)}
            yield from (one.lineno for one in shown if ast.unparse(one) in of_classes)


def _is_wide(caught: ast.expr | None) -> bool:
    return caught is None or any(isinstance(node, ast.Name) and node.id in _WIDE for node in ast.walk(caught))


def _printed(handler: ast.ExceptHandler, name: str) -> Iterator[int]:
    for node in ast.walk(handler):
        values: list[ast.expr] = []
        if isinstance(node, ast.FormattedValue):
            values = [node.value]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("str", "repr"):
            values = node.args
        yield from (one.lineno for one in values if isinstance(one, ast.Name) and one.id == name)


def _is_class_name(node: ast.expr) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr != "__name__" or not isinstance(node.value, ast.Call):
        return False
    return getattr(node.value.func, "id", "") == "type" and len(node.value.args) == 1


RULES = (
    Rule("names are compared by `near`", imported("difflib"), ("trivium.codecs.near_names",)),
    Rule(
        "credentials are read by `credential`",
        written("authorization", b"authorization"),
        ("trivium.codecs.credentials",),
    ),
    Rule("an error's words are `said_by` it", raw_errors, ("trivium.types.errors", *_OPERATORS)),
    Rule(
        "names that may be registered are judged by `unfit_name`",
        called("isprintable"),
        (
            "trivium.types.registered_names",
            *("trivium.codecs.visible_text", "trivium.codecs.forms"),
            *("trivium.servers.triton.words.tokens", "trivium.formats.checkpoint", "trivium.access.keys"),
            "trivium.servers.djl.folder.language_model",
        ),
    ),
    Rule(
        "segments of URLs are decoded and judged by `path_segments`",
        imported("unquote", "unquote_to_bytes"),
        (
            "trivium.codecs.path_segments",
            "trivium.codecs.forms",
            *("trivium.types.sources", "trivium.servers.djl.words.model_urls"),  # paths of this machine
            "trivium.servers.torchserve.words.model_urls",
        ),
    ),
    Rule(
        "command lines of Python are made by `python_commands`",
        command_lines,
        ("trivium.machine.python_commands",),
    ),
    Rule(
        "what Linux alone has is asked for by `system`",
        taken(
            *(
                "memfd_",
                "MFD_",
                "F_ADD_SEALS",
                "F_SEAL_",
                "MADV_REMOVE",
                "pidfd_",
                "waitid",
                "P_PID",
                "WNOWAIT",
            ),
            *(
                "sched_",
                "SCHED_",
                "pipe2",
                "CDLL",
                "eventfd",
                "epoll",
                "prlimit",
                "RUSAGE_THREAD",
                "unshare",
                "splice",
            ),
        ),
        ("trivium_worker.wire.system",),
    ),
    Rule(
        "code of a model's folder runs by `FolderCode`",
        trusting,
        ("trivium.engines.hf.folder_code", "trivium_worker"),
    ),
)


def faults(source: Path = SOURCE) -> list[str]:
    """Return one line for everything that is a second copy."""
    found = []
    for path in sorted(source.rglob("*.py")):
        module = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        tree = files.tree(path)
        for rule in RULES:
            if module.startswith("trivium.") and not _is_home(module, rule):
                found += [f"{path.relative_to(source)}:{line}: {rule.text}" for line in rule.shows(tree)]
    return found


def _is_home(module: str, rule: Rule) -> bool:
    return any(module == home or module.startswith(f"{home}.") for home in rule.homes)
