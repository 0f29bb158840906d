"""Reads the head of a call from a header block. A block that a client repeats costs one look into a dictionary.

Source: RFC 7541, RFC 9113 section 8; the decoding is `hpack`'s. What a block means depends on the dynamic table, so
all that is remembered is forgotten when that changes. One per connection; blocks must come in their order. A list
that is too long refuses its call alone: what it does to the table is followed, and nothing of it is kept.
"""

from collections.abc import Callable, Iterator

from hpack import Decoder, HPACKError, OversizedHeaderListError
from hpack.hpack import decode_integer
from hpack.table import HeaderTable

from trivium.frontends.h2.frames import COMPRESSION_ERROR, ENHANCE_YOUR_CALM, ConnectionFault
from trivium.frontends.h2.rpc_head import RpcHead, read_head, too_long

_MOST_REMEMBERED, _MOST_BYTES = 32, 1024
"""Blocks that are remembered, and bytes of one: a client repeats a few short ones."""


class _Table(HeaderTable):
    """Tells whether it has changed."""

    def __init__(self) -> None:
        super().__init__()
        self.changes = 0

    def add(self, name: bytes, value: bytes) -> None:
        self.changes += 1
        super().add(name, value)

    @property
    def maxsize(self) -> int:
        return int(self._maxsize)

    @maxsize.setter
    def maxsize(self, newmax: int) -> None:
        self.changes += 1
        HeaderTable.maxsize.fset(self, newmax)  # type: ignore[attr-defined]


_MOST_TOLD = 100
_MOST_UPDATES = 2
_UPDATE, _UPDATE_MASK, _UPDATE_MOST = 0x20, 0xE0, 0x1F


def _check_updates(block: bytes) -> None:
    """Refuse a block that begins with more updates of the table's size than RFC 7541, section 4.2, has a use for."""
    at = updates = 0
    size = len(block)
    while at < size and block[at] & _UPDATE_MASK == _UPDATE:
        updates += 1
        if updates > _MOST_UPDATES:
            raise ConnectionFault(
                COMPRESSION_ERROR,
                f"A header block begins with more than {_MOST_UPDATES} updates of the dynamic table's size.",
            )
        if block[at] & _UPDATE_MOST == _UPDATE_MOST:  # an integer of several bytes
            at += 1
            while at < size and block[at] & 0x80:
                at += 1
        at += 1


_ENTRY_BYTES = 32
"""What a header counts beside its name and value (RFC 9113, section 6.5.2)."""

_INDEXED, _ADDS = 0x80, 0x40
_MOST_DIGITS = 8
"""Bytes of an integer: a longer one is none that could be meant, and dear to make."""

_HOPELESS = 2**14
"""Bytes of a literal, in Huffman's code as well, that the table cannot hold: its codes have 30 bits at most."""

_EMPTIES = b"\x40\x01x\x7f\x81\x1f" + bytes(4096)
"""A literal that is larger than the whole table, by which it becomes empty (RFC 7541, section 4.4)."""


def _representations(block: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield where each header of a block begins and ends, and what it counts at least. Decodes no text."""
    at, size = 0, len(block)
    while at < size:
        first, begin = block[at], at
        if first & _INDEXED:
            at += decode_integer(block[at : at + _MOST_DIGITS], 7)[1]
            yield begin, at, _ENTRY_BYTES
        elif first & _UPDATE_MASK == _UPDATE:
            at += decode_integer(block[at : at + _MOST_DIGITS], 5)[1]
            yield begin, at, 0
        else:
            index, used = decode_integer(block[at : at + _MOST_DIGITS], 6 if first & _ADDS else 4)
            at += used
            for _ in range(1 if index else 2):  # the name, where it is not in a table, and the value
                length, used = decode_integer(block[at : at + _MOST_DIGITS], 7)
                at += used + length
            yield begin, at, _ENTRY_BYTES + at - begin
    if at > size:
        raise HPACKError("Truncated header block")


class HeaderBlocks:
    """`most_bytes`: of a header list, as RFC 9113 6.5.2 counts them; a call with more is refused, and with more than
    `most_followed` the connection ends. `on_long` hears of each list that is too long, with its bytes.
    """

    def __init__(self, most_bytes: int, most_followed: int, on_long: Callable[[int], None]) -> None:
        self._decoder = Decoder(most_followed)
        self._table = _Table()
        self._decoder.header_table = self._table
        self._known: dict[bytes, RpcHead] = {}
        self._most_bytes = most_bytes
        self._most_followed = most_followed
        self._on_long = on_long

    def head(self, block: bytes) -> RpcHead:
        """The head of a call. ConnectionFault for what cannot be decoded: later blocks could not be, either."""
        known = self._known.get(block)
        if known is not None:
            return known
        changes = self._table.changes
        headers = self._decode(block)
        head = too_long(self._most_bytes) if headers is None else read_head(headers)
        if changes != self._table.changes or len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        if changes == self._table.changes and len(block) <= _MOST_BYTES:
            self._known[block] = head
        return head

    def skip(self, block: bytes) -> None:
        """A block whose meaning nobody wants; the dynamic table still has to follow it."""
        changes = self._table.changes
        self._decode(block)
        if changes != self._table.changes:
            self._known.clear()

    def _decode(self, block: bytes) -> list[tuple[bytes, bytes]] | None:
        """Return the headers of a block; None where there are too many of them, and the table has followed."""
        _check_updates(block)
        try:
            if len(block) > self._most_bytes:
                self._follow(block)
                return None
            headers = [(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)]
        except OversizedHeaderListError as error:
            raise self._far_too_long() from error
        except (HPACKError, IndexError) as error:
            text = (
                f"A header block cannot be decoded: {str(error)[:_MOST_TOLD]}"  # it may quote the whole block
            )
            raise ConnectionFault(COMPRESSION_ERROR, text) from error
        size = sum(len(name) + len(value) + _ENTRY_BYTES for name, value in headers)
        if size > self._most_bytes:
            self._on_long(size)
            return None
        return headers

    def _follow(self, block: bytes) -> None:
        """Do to the table what a long block says, without reading what is not for it."""
        counted = 0
        for begin, end, size in _representations(block):
            if not size and counted:
                raise HPACKError("Table size update not at the start of the block")
            counted += size
            if counted > self._most_followed:
                raise self._far_too_long()
            if not size or (block[begin] & _ADDS and not block[begin] & _INDEXED):
                self._decoder.decode(block[begin:end] if end - begin <= _HOPELESS else _EMPTIES, raw=True)
        self._on_long(max(counted, len(block)))

    def _far_too_long(self) -> ConnectionFault:
        text = f"A header list exceeds the limit of {self._most_followed} bytes."
        return ConnectionFault(ENHANCE_YOUR_CALM, text)
