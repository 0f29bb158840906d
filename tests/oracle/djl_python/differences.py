"""The differences to the original package that were accepted: which calls show each, and why it stays.

`docs/djl.md` has a table made of this. The suite holds it to both: what is not here must not differ, and what is here
must. Imports nothing of the project: the manual's maker reads it by itself.
"""

from typing import NamedTuple


class Difference(NamedTuple):
    """`calls`: names, each with a piece of every expression that shows it; the rest is what the manual says."""

    calls: tuple[tuple[str, str], ...]
    what: str
    djl: str
    trivium: str
    reason: str


_SHORT = "Output().add('half')"

ACCEPTED: tuple[Difference, ...] = (
    Difference(
        (("Input.get_properties", "['CONTENT-TYPE']"), ("Input.is_batch", "'Batch_Size'")),
        "a property looked up in `properties`",
        "in the case that the client wrote",
        "in any case",
        "the server writes names of headers in lower case, whoever the client is",
    ),
    Difference(
        (
            ("Output.__str__", "bytes(2)"),
            ("Output.add", "type(Output().add(b'x')"),
            ("Output.add", "type(Output().add({})"),
            ("Output.add", "memoryview"),
        ),
        "bytes, a memoryview or JSON in an Output",
        "copied into a bytearray; a memoryview is refused",
        "kept as bytes",
        "large answers are not copied",
    ),
    Difference(
        (("Output.error", _SHORT),),
        "`error` after something was added",
        "is added to it, and the client gets what came first",
        "takes its place",
        "a status of 424 with half an answer helps nobody",
    ),
    Difference(
        (("Output.add_as_json", "np.bool_"), ("Output.add_as_json", "date(2024")),
        "numpy's truth values, dates and times of day as JSON",
        "TypeError",
        "sent",
        "numbers, arrays and moments are sent as well",
    ),
    Difference(
        (
            ("Output.add_as_npz", "add_as_npz(np.ones(2))"),
            ("encode_decode.encode", "np.ones(2), 'tensor/npz'"),
        ),
        "one array for an npz archive",
        "an array per row",
        "that array",
        "`add_as_numpy` takes one array so",
    ),
    Difference(
        (("Output.execute_finalize", "int, 'x'"), ("Output.execute_finalize", "finalize(3)")),
        "a function for the end that raises",
        "`execute_finalize` raises, and the worker logs it",
        "`execute_finalize` prints it",
        "the answer is out",
    ),
    Difference(
        (
            ("PairList", "pair_list="),
            ("PairList", "pair_map="),
            ("PairList.add_all", "p.add_all(pairs("),
        ),
        "a PairList of pairs or of a dict, and one added to another",
        "fails with an error of its own",
        "works",
        "that is what the parameters are for",
    ),
    Difference(
        (
            ("encode_decode.encode", "'text/csv'"),
            ("encode_decode.encode_csv", "[[1, 2], [3, 4]]"),
            ("encode_decode.decode", "'text/csv', 'k'"),
        ),
        "CSV",
        "`encode` fails with an error of its own; `decode` does not look at `key`; rows are dicts",
        "`encode` writes it, rows may be lists; `decode` reads `key`",
        "that is what the content type and the parameter are for",
    ),
    Difference(
        (
            ("np_util.to_nd_list", "np.array([True, False])"),
            ("np_util.to_nd_list", "'>i4'"),
            ("np_util.to_nd_list", "'ä'"),
            ("np_util.to_nd_list", "M8[D]"),
        ),
        "truth values, text, other byte orders and dates as an NDList",
        "written with words, or in an order, that no reader understands",
        "BOOLEAN, STRING, little-endian; dates are refused",
        "Java's reader takes them",
    ),
    Difference(
        (("np_util.from_nd_list", "'BOOLEAN'"), ("np_util.from_nd_list", "version=2")),
        "an NDList with truth values, or of an older version",
        "refused",
        "read",
        "Java's clients send them",
    ),
    Difference(
        (
            ("Input.get_as_numpy", "b'no list'"),
            ("Input.get_data", "b'x')], content_type='tensor/ndlist').get_data()"),
            ("encode_decode.decode", "b'no')]), 'tensor/ndlist'"),
            ("test_model.extract_output_as_numpy", "'no list'"),
            ("np_util.from_nd_list", "b'rest'"),
            ("np_util.from_nd_list", "(b'')"),
            ("np_util.from_nd_list", "'NDAS'"),
            ("np_util.from_nd_list", "version=4"),
            ("np_util.from_nd_list", "bytes(3)"),
            ("np_util.from_nd_list", "'FLOAT33'"),
            ("np_util.from_nd_list", "[:-1]"),
            ("np_util.from_nd_list", "[:20]"),
        ),
        "bytes that are no NDList",
        "AssertionError, struct.error or TypeError; bytes behind it are ignored",
        "ValueError that says what is wrong",
        "one exception to catch, and lengths are checked before memory is asked for",
    ),
    Difference(
        (("test_model.create_request", "'a.png'"), ("test_model.create_request", "'a.jpeg'")),
        "the content type of a picture from a file",
        "`images/png`",
        "`image/png`",
        "it is what clients send, and what `get_data` and `decode` know",
    ),
    Difference(
        (
            ("test_model.create_request", "['k=a=b']"),
            ("test_model.create_request", "create_request([], None)"),
            ("test_model.run", "'--model-dir', folder)"),
        ),
        "contents with an equals sign, or none at all, for `test_model`",
        "cut at the second sign; AttributeError; without `--input` each letter of input.txt is a file",
        "kept whole; ValueError; without `--input` the file input.txt",
        "that is what the option is for",
    ),
    Difference(
        (("test_model.load_properties", "'a: b"), ("test_model.load_properties", "'no value")),
        "a line of serving.properties without an equals sign",
        "ValueError",
        "read as Java reads it",
        "the server reads that file so, too",
    ),
    Difference(
        (("test_model.TestHandler", "module(handle=str)"),),
        "a module without `_service` in TestHandler",
        "AttributeError",
        "taken",
        "a handler needs no such name",
    ),
    Difference(
        (("SessionManager.get_session", "o := manager()"),),
        "a session that another worker began",
        "not found, unless this worker started later",
        "found",
        "the workers of a model share its sessions, whichever gets the next request",
    ),
    Difference(
        (
            ("SessionManager", "'open'"),
            ("SessionManager", "oct("),
            ("SessionManager.create_session", "oct("),
            ("Session.put", "oct("),
        ),
        "who may look into sessions",
        "whoever the umask lets; any folder is taken",
        "the user alone; a folder that others may write into is refused",
        "values are pickled, and whoever writes a pickle has it run by whoever reads it",
    ),
)

SIGNATURES: dict[str, str] = {
    "Session.get_as_numpy": "`dtype` is a text, not numpy's class: numpy is imported only by those who use it",
}
"""Names whose parameters differ, and why."""
