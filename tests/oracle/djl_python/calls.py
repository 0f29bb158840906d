"""The calls by which `djl_python` is compared with the original package: an expression each, by the name that it tries.

Imports nothing of the project: the program that records the original runs under an interpreter that lacks it.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tests.oracle.djl_python import answers, codecs, requests, tools


class Call(NamedTuple):
    """One expression; `is_bad` where the caller does something wrong."""

    name: str
    expression: str
    is_bad: bool


def _calls(*tables: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]) -> tuple[Call, ...]:
    found = []
    for table in tables:
        for name, (good, bad) in table.items():
            found += [Call(name, text, False) for text in good] + [Call(name, text, True) for text in bad]
    return tuple(found)


CALLS = _calls(requests.CALLS, answers.CALLS, codecs.CALLS, tools.CALLS)
