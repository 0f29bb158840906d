"""Reads YAML as plain values, safely: no tags of its own, bounded in depth, aliases and the length of numbers."""

import re
from typing import Any

import yaml

MAX_DEPTH = 50
MAX_ALIASES = 16
MAX_ALIASED_EVENTS = 2000
"""Aliases of aliases multiply: a document that has any must be small."""

MAX_DIGITS = 1000
_NUMBER = re.compile(r"[-+]?[0-9][0-9_:.]*")
"""Numbers to base 60 (1:30:00) take time that is quadratic in their length."""


class YamlRefused(Exception):
    """A document that is not read: what was found, and in which line, where that is known."""

    def __init__(self, found: str, line: int | None) -> None:
        super().__init__(found)
        self.line = line


class PlainLoader(yaml.SafeLoader):
    """It builds plain values, and refuses one that is not what its tag says, at which PyYAML raises anything."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            told = f"{str(node.value)[:80]!r} is no {node.tag.rpartition(':')[2]} ({error})"
            raise YamlRefused(told, node.start_mark.line + 1) from error


def load(text: str, most_aliases: int = MAX_ALIASES) -> tuple[object, yaml.Node | None]:
    """Return the only document of a text as values and as a node, which knows its lines. Raises YamlRefused."""
    try:
        _check_events(text, most_aliases)
        loader = PlainLoader(text)
        node = loader.get_single_node()
        return None if node is None else loader.construct_document(node), node
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlRefused(str(error.problem), mark.line + 1 if mark else None) from error
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        raise YamlRefused(str(error), None) from error


def _check_events(text: str, most_aliases: int) -> None:
    depth = aliases = 0
    for count, event in enumerate(yaml.parse(text, yaml.SafeLoader)):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent):
            aliases += 1
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.ScalarEvent) and _is_long_number(event):
            raise YamlRefused(f"a number of {len(event.value)} characters", line)
        if depth > MAX_DEPTH:
            raise YamlRefused(f"values nested over {MAX_DEPTH} deep", line)
        if aliases > most_aliases or (aliases and count > MAX_ALIASED_EVENTS):
            raise YamlRefused(f"more than {most_aliases} aliases, or aliases in a large file", line)


def _is_long_number(scalar: yaml.ScalarEvent) -> bool:
    is_quoted = scalar.implicit[1]
    return not is_quoted and len(scalar.value) > MAX_DIGITS and bool(_NUMBER.fullmatch(scalar.value))
