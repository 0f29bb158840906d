"""The DataType enum of ModelConfig and ours: TYPE_ in front, and TYPE_STRING for BYTES."""

from trivium.types.datatype import BY_NAME, DataType
from trivium.wires.v2.schema import ENUMS

_TO_OURS = {
    number: BY_NAME["BYTES" if name == "TYPE_STRING" else name.removeprefix("TYPE_")]
    for name, number in ENUMS["DataType"].items()
    if name != "TYPE_INVALID"
}
_TO_TRITON = {ours: number for number, ours in _TO_OURS.items()}


def datatype_of(number: int) -> DataType:
    """Ours of an enum number other than TYPE_INVALID."""
    return _TO_OURS[number]


def number_of(datatype: DataType) -> int:
    """The enum number of ours."""
    return _TO_TRITON[datatype]
