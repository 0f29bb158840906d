"""Values between the runtime and an adapter: items with tensors or a raw body in, outcomes out.

An adapter is one handler dialect: it shows items to user code in the dialect's own form, and turns what user
code returns into outcomes. Nothing here knows a socket or a thread; numpy is imported when it is asked for.
"""

import struct
from collections.abc import Sequence
from typing import Any, TypeVar

Scalar = bool | int | float | str
SequencePlace = tuple[int | str, bool, bool]
"""The id of a request's sequence, whether that starts with it, whether it ends."""

Buffer = bytes | bytearray | memoryview

NUMPY_TYPES = {
    "BOOL": "?",
    "UINT8": "u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "INT8": "i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
    "BF16": "<u2",
}
"""v2 datatype -> numpy's code for it; BF16 as its raw bits. BYTES, which has elements, is not among them."""

_WIRE_NAMES = {code.lstrip("<"): name for name, code in NUMPY_TYPES.items() if name != "BF16"}
_WIRE_NAMES["b1"] = "BOOL"  # numpy's `dtype.str` without its byte order
_LENGTH = struct.Struct("<I")


class Failure(Exception):
    """An error of one item, or (raised) of a whole batch. `code` is a value of `trivium.types.errors.Code`;
    `status` the HTTP status that the handler asked for; `reason` one of `trivium.types.reasons`, with its `metadata`.
    """

    def __init__(
        self,
        message: str,
        code: str = "model failed",
        status: int | None = None,
        reason: str = "",
        metadata: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.reason = reason
        self.metadata = metadata or {}


def anew(failure: Failure) -> Failure:
    """Return a failure like this one, to be raised. This one is a value that others may hold: it gets no frames."""
    return type(failure)(failure.message, failure.code, failure.status, failure.reason, failure.metadata)


Raised = TypeVar("Raised", bound=BaseException)


def frameless(error: Raised) -> Raised:
    """Return an error without its frames and what it comes from. For one that is handed on or kept as a value: its
    frames would keep whatever they had in hand, a request among it.
    """
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error


class Tensor:
    """One named tensor: `datatype` by its v2 name, `data` row-major and little-endian without padding; of BYTES
    each element is its length in 4 bytes, then its bytes. `data` may view a request's buffer: never write.
    """

    __slots__ = ("data", "datatype", "name", "shape")

    def __init__(self, name: str, datatype: str, shape: Sequence[int], data: Buffer) -> None:
        self.name = name
        self.datatype = datatype
        self.shape = tuple(shape)
        self.data = data

    @classmethod
    def of_elements(
        cls, name: str, elements: Sequence[bytes], shape: Sequence[int] | None = None
    ) -> "Tensor":
        """A BYTES tensor; its shape is that of a list, if none is given."""
        pieces = []
        for element in elements:
            pieces.append(_LENGTH.pack(len(element)))
            pieces.append(element)
        return cls(name, "BYTES", (len(elements),) if shape is None else shape, b"".join(pieces))

    @classmethod
    def of_array(cls, name: str, array: Any) -> "Tensor":
        """Make a tensor from a numpy array. Text becomes UTF-8; TypeError for a dtype that v2 does not know."""
        import numpy

        if array.dtype.kind in "SUO":
            elements = [_as_bytes(element) for element in array.ravel().tolist()]
            return cls.of_elements(name, elements, array.shape)
        datatype = _WIRE_NAMES.get(array.dtype.str[1:])
        if datatype is None:
            raise TypeError(f"tensor {name!r}: dtype {array.dtype} has no v2 datatype; convert it first")
        plain = numpy.ascontiguousarray(array, NUMPY_TYPES[datatype]).reshape(array.shape)
        return cls(name, datatype, array.shape, plain.data.cast("B") if plain.size else b"")

    def array(self) -> Any:
        """The tensor as a numpy array: a read-only view, or for BYTES an array of `bytes` objects."""
        import numpy

        if self.datatype == "BYTES":
            elements = self.elements()
            array = numpy.empty(len(elements), dtype=object)
            array[:] = elements
            return array.reshape(self.shape)
        return numpy.frombuffer(self.data, NUMPY_TYPES[self.datatype]).reshape(self.shape)

    def elements(self) -> list[bytes]:
        """The elements of a BYTES tensor."""
        view, at, found = memoryview(self.data), 0, []
        while at < len(view):
            start = at + 4
            at = start + _LENGTH.unpack_from(view, start - 4)[0]
            found.append(view[start:at].tobytes())
        return found


class Part:
    """One part of a raw body: a form field or file, or the whole body with an empty name."""

    __slots__ = ("content_type", "data", "filename", "name")

    def __init__(self, data: Buffer, content_type: str = "", name: str = "", filename: str = "") -> None:
        self.data = data
        self.content_type = content_type
        self.name = name
        self.filename = filename


class Raw:
    """A body that nobody has looked into. `query` has its arguments in order, with repeats; `path` is what stood behind
    the model's route, None where that has none. `form` says what the only part is where its content type does not, by
    the word that the server has for it. In an answer `status` and `reason` are for HTTP (0: nothing said).
    """

    __slots__ = ("form", "parts", "path", "properties", "query", "reason", "status")

    def __init__(
        self,
        parts: Sequence[Part],
        properties: dict[str, str] | None = None,
        query: Sequence[tuple[str, str]] = (),
        status: int = 0,
        reason: str = "",
        path: str | None = "",
    ) -> None:
        self.parts = list(parts)
        self.properties = {} if properties is None else properties
        self.query = query
        self.status = status
        self.reason = reason
        self.path = path
        self.form = ""


Payload = list[Tensor] | Raw


class Listed:
    """Several payloads, or lists of them, as one: what a function that is a step of a graph gets, and may give. No
    other adapter sees it.
    """

    __slots__ = ("payloads",)

    def __init__(self, payloads: "Sequence[Whole]") -> None:
        self.payloads = list(payloads)


Whole = Payload | Listed


class Generate:
    """A request to generate text, as the server has written it: a JSON text, and embeddings of the prompt (float32, of
    this shape), if they are its prompt. Only engines of the server's own get one.
    """

    __slots__ = ("data", "embeds", "shape")

    def __init__(self, data: Buffer, embeds: Buffer = b"", shape: tuple[int, int] | None = None) -> None:
        self.data = data
        self.embeds = embeds
        self.shape = shape


class Generated:
    """Parts of what was generated, one after the other, each a JSON text that the server reads; or, when they have
    come, all of them as one list.
    """

    __slots__ = ("pieces",)

    def __init__(self, pieces: Sequence[Buffer]) -> None:
        self.pieces = list(pieces)


class _End:
    """The outcome of an item whose parts have all been sent: nothing more, and final."""


END = _End()
Outcome = list[Tensor] | Raw | Listed | Generated | Failure | _End | None
"""What an adapter makes of an item. None: the item ends later, by its own `send(..., final=True)`."""


class Outlet:
    """Takes the parts of the answers to items."""

    def send(
        self, item: "Item", outcome: Any, final: bool, parameters: dict[str, Scalar] | None = None
    ) -> None:
        """See `Item.send`."""
        raise NotImplementedError

    def keep(self, item: "Item", outcome: Any) -> None:
        """See `Item.offer`."""
        raise NotImplementedError


class Item:
    """One request as an adapter sees it. `outputs` are those asked for (empty: all); `rows` as the core counts
    them. `sequence` is (id, starts, ends); `timeout` seconds until its answer is worth nothing.
    """

    __slots__ = ("_about", "_outlet", "is_cancelled", "number", "payload", "request_id", "rows")

    def __init__(
        self,
        number: int,
        request_id: str,
        rows: int,
        payload: Payload,
        about: dict[str, Any],
        outlet: "Outlet",
    ) -> None:
        self.number = number
        self.request_id = request_id
        self.rows = rows
        self.payload = payload
        self.is_cancelled = False  # set by the runtime, from the thread that reads
        self._about = about
        self._outlet = outlet

    @property
    def outputs(self) -> list[str]:
        """The names asked for."""
        outputs: list[str] = self._about.get("outputs", [])
        return outputs

    @property
    def parameters(self) -> dict[str, Scalar]:
        """Return the parameters as the client sent them."""
        parameters: dict[str, Scalar] = self._about.get("parameters", {})
        return parameters

    @property
    def method(self) -> str:
        """Return what the client asks for: predict or explain."""
        method: str = self._about.get("method", "predict")
        return method

    @property
    def priority(self) -> int:
        """0 is the model's default."""
        priority: int = self._about.get("priority", 0)
        return priority

    @property
    def timeout(self) -> float | None:
        """Seconds from when the server received it."""
        timeout: float | None = self._about.get("timeout")
        return timeout

    @property
    def sequence(self) -> SequencePlace | None:
        """Its id, whether it starts and whether it ends."""
        sequence = self._about.get("sequence")
        return None if sequence is None else (sequence[0], sequence[1], sequence[2])

    @property
    def context(self) -> str:
        """The `traceparent` of its own trace, if it is traced and has one."""
        context: str = self._about.get("context", "")
        return context

    def send(self, outcome: Any, final: bool = False, parameters: dict[str, Scalar] | None = None) -> None:
        """One part of the answer, now, from any thread: a payload, a Failure (which is always final) or END.

        Blocks while the window of unsent parts is full. Parts of a cancelled item are dropped.
        """
        self._outlet.send(self, outcome, final, parameters)

    def offer(self, outcome: Any) -> None:
        """One part that is not the last, from within a step. Never waits: what the receiver has no room for is kept,
        and leaves joined with what follows.
        """
        self._outlet.keep(self, outcome)


def _as_bytes(element: Any) -> bytes:
    return element if isinstance(element, bytes) else str(element).encode("utf-8")
