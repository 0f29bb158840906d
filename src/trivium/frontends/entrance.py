"""Groups what decides who gets in by one listener."""

from dataclasses import dataclass

from trivium.frontends.pages import PageRule
from trivium.tls import Tls
from trivium.types.interfaces import ALLOW_ALL, Authorizer


@dataclass(frozen=True, slots=True)
class Entrance:
    """Holds what a front end asks before it serves: who may (`authorizer`), and over HTTP whether a page may (`pages`,
    None where all may). With `tls` it speaks TLS alone.
    """

    authorizer: Authorizer = ALLOW_ALL
    pages: PageRule | None = None
    tls: Tls | None = None


EVERYBODY = Entrance()
