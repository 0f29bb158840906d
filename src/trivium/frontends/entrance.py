"""Groups what decides who gets in by one listener."""

from collections.abc import Callable
from dataclasses import dataclass

from trivium.codecs.page_rule import PageRule
from trivium.tls import Tls
from trivium.types.interfaces import ALLOW_ALL, Authorizer


@dataclass(frozen=True, slots=True)
class Entrance:
    """Holds what a front end asks before it serves: who may (`authorizer`), and over HTTP whether a page may (`pages`,
    None where all may). With `tls`, which returns the certificates that are in force, it speaks TLS alone.
    """

    authorizer: Authorizer = ALLOW_ALL
    pages: PageRule | None = None
    tls: Callable[[], Tls] | None = None


EVERYBODY = Entrance()
