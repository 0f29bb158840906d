"""Those of Triton's error texts that are more than a template: lists, shapes, the words of its JSON reader.

Source: spec sheet `triton`, sections 4.5 and 5.3. Facts in, one text out.
"""

from collections.abc import Iterable

from trivium.codecs.error_table import Facts
from trivium.types.datatype import DataType

_NOTE = (
    "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each "
    "input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting "
    "max_batch_size to zero. See the model configuration docs for more info on max_batch_size."
)
ONE_OF = (
    "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', "
    "'shared_memory_region' in 'parameters'. But "
)
_FIELDS = {
    "bool_contents": "BOOL",
    "int_contents": "INT32",
    "int64_contents": "INT64",
    "uint_contents": "UINT32",
    "uint64_contents": "UINT64",
    "fp32_contents": "FP32",
    "fp64_contents": "FP64",
    "bytes_contents": "BYTES",
}
_RPC_FIELDS = {
    "priority": "int64_param or uint64_param",
    "timeout": "int64_param",
    "sequence_id": "int64_param or string_param",
    "sequence_start": "bool_param",
    "sequence_end": "bool_param",
}


def unstarted(facts: Facts) -> str:
    """Return the text for a request of a sequence that has not begun, or has been ended since none came."""
    idle = facts["idle"]
    why = (
        f": the timeout of the corresponding sequence has been expired ({idle:g} s without one)"
        if idle
        else ""
    )
    about = f"inference request for sequence {facts['sequence']} to model '{facts['model']}'"
    return f"{about} must specify the START flag on the first request of the sequence{why}"


def several_fields(facts: Facts) -> str:
    """Return the text about an input whose data are given in several places."""
    fields = " ".join(f"'{name}'" for name in _names(facts["fields"]))
    return f"{ONE_OF}set {fields}"


def misread(expected: str) -> str:
    """Return the text of its JSON reader about a value that is not of the type `expected`."""
    return f"attempt to access JSON non-{expected} as {'double' if expected == 'number' else expected}"


def element(facts: Facts) -> str:
    """Return the text about an element that does not fit its datatype."""
    datatype = facts["datatype"]
    assert isinstance(datatype, DataType)
    if datatype is DataType.BYTES:
        return f"Unable to parse JSON bytes array: {misread('string')}"
    kinds = {"b": "boolean", "u": "unsigned-integer", "i": "signed-integer", "f": "number"}
    return f"Unable to parse 'data': {misread(kinds[datatype.dtype.kind])}"


def parameter(facts: Facts) -> str:
    """Return the text about a parameter that the protocol knows and that has another type."""
    return f"Unable to parse '{facts['key']}': {misread(str(facts['expected']))}"


def no_object(facts: Facts) -> str:
    """Return the text about a value that has to be an object; `key` is its name, if it has one."""
    if "key" in facts:
        return f"Expected JSON object for keyword: '{facts['key']}': {misread('object')}"
    return "attempt to get members for non-object"


def no_scalar(facts: Facts) -> str:
    """Return the text about a parameter that is a list or an object; `within` is what it is in, if in anything."""
    text = f"parameter '{facts['key']}' has invalid type. It should be either 'int', 'bool', or 'string'."
    return f"Converting keyword: '{facts['within']}': {text}" if "within" in facts else text


def rpc_parameter(facts: Facts) -> str:
    """Return the text about a parameter of another type over gRPC."""
    key = str(facts["key"])
    end = "" if key == "classification" else "."
    return f"invalid value type for '{key}' parameter, expected {_RPC_FIELDS.get(key, 'int64_param')}{end}"


def many_strings(facts: Facts) -> str:
    """Return the text about more strings than a shape has elements: the original counts no further than the first."""
    expected = facts["expected"]
    assert isinstance(expected, int)
    return (
        f"{facts['asked']}"
        f"unexpected number of string elements {expected + 1} for inference input '{facts['input']}' for model "
        f"'{facts['model']}', expecting {expected}"
    )


def input_count(facts: Facts) -> str:
    """Return the text about a request with more or fewer inputs than the model takes."""
    least, most, got = facts["least"], facts["most"], _names(facts["got"])[::-1]
    model = facts["model"]
    if least == most:
        begin = f"expected {most} inputs but got {len(got)} inputs for model '{model}'."
    else:
        begin = f"expected number of inputs between {least} and {most} but got {len(got)} inputs for model '{model}'."
    missing = _names(facts["missing"])
    # The original opens the second list with its first name only.
    lacking = f"['{_joined(missing)}']" if missing else "]"
    listed = f"['{_joined(got)}']" if got else "[]"
    found = f"Got input(s) {listed}, but missing required input(s) {lacking}."
    return f"{facts['asked']}{begin} {found} Please provide all required input(s)."


def shape(facts: Facts) -> str:
    """Return the text about an input of another shape."""
    text = f"{facts['asked']}unexpected shape for input '{facts['input']}' for model '{facts['model']}'. "
    text += f"Expected {_dims(facts['expected'])}, got {_dims(facts['found'])}. "
    return text + _NOTE if facts["has_rows"] else text


def contents_type(facts: Facts) -> str:
    """Return the text about contents in the field of another datatype."""
    found = _FIELDS.get(str(facts["found"]), "<invalid>")
    return (
        f"unexpected explicit tensor data for input tensor '{facts['input']}' for model '{facts['model']}' of type "
        f"'{found}', expected datatype '{facts['datatype']}'"
    )


def _names(value: object) -> list[str]:
    assert isinstance(value, Iterable)
    return [str(name) for name in value]


def _joined(names: list[str]) -> str:
    return "','".join(names)


def _dims(value: object) -> str:
    return f"[{','.join(_names(value))}]"


FAILURES = (
    "Unknown",
    "Internal",
    "Not found",
    "Invalid argument",
    "Unavailable",
    "Unsupported",
    "Already exists",
)


def not_loaded(facts: Facts) -> str:
    """Why a version could not be loaded, the kind of failure in front; where nothing says which, it is the server's."""
    text = str(facts["text"])
    told = text if text.partition(":")[0] in FAILURES else f"Internal: {text}"
    return f"load failed for model '{facts['model']}': version {facts['version']} is at UNAVAILABLE state: {told};\n"


def not_cacheable(facts: Facts) -> str:
    """A model that may answer in several parts asks for the response cache."""
    text = f"Response Cache does not currently support model {facts['model']} with 'decoupled' transaction policy. "
    return not_loaded({**facts, "text": f"{text}Please disable the response cache."})


def no_backend(facts: Facts) -> str:
    """A model of a backend that there is not."""
    text = f"unable to find backend library for backend '{facts['engine']}', try specifying runtime on the model "
    return not_loaded({**facts, "text": f"Invalid argument: {text}configuration."})
