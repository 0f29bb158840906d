"""Where a DJL server answers otherwise here than the sheet says, each row by its name, and why that is accepted."""

from collections.abc import Mapping

_METHOD = "A method that no standard knows is 400: the HTTP parser has none of them, and no client of DJL sends one."

ACCEPTED: Mapping[str, str] = {
    "4.1 infe BREW /predictions/obedient b'x' {}": _METHOD,
}

_MORE = "What can only mean one thing is read, where DJL refuses it: nobody who is served by DJL sends it."
_LONE = "A number that is no list is one element, for models that take one; this one's two are missed by its shape."

ACCEPTED_TENSORS: Mapping[str, str] = {
    "9.4 infe POST /predictions/doubled columns {}": _MORE,
    "9.1 infe POST /predictions/doubled no JSON without the header {}": _MORE,
    "9.1 infe POST /predictions/doubled JSON 5 {'Content-Type': 'application/json'}": _LONE,
    "9.1 infe POST /predictions/doubled JSON {\"inputs\":5} {'Content-Type': 'application/json'}": _LONE,
}
