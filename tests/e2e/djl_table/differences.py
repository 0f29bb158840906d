"""Where a DJL server answers otherwise here than the sheet says, each row by its name, and why that is accepted."""

from collections.abc import Mapping

_METHOD = "A method that no standard knows is 400: the HTTP parser has none of them, and no client of DJL sends one."

ACCEPTED: Mapping[str, str] = {
    "4.1 infe BREW /predictions/obedient b'x' {}": _METHOD,
}
