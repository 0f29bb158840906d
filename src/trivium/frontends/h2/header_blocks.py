"""Reads the head of a call from a header block. A block that a client repeats costs one look into a dictionary.

Source: RFC 7541, RFC 9113 section 8; the decoding is `hpack`'s. What a block means depends on the dynamic table, so
all that is remembered is forgotten when that changes. One per connection; blocks must come in their order.
"""

from hpack import Decoder, HPACKError, OversizedHeaderListError
from hpack.table import HeaderTable

from trivium.frontends.h2.frames import COMPRESSION_ERROR, ENHANCE_YOUR_CALM, ConnectionFault
from trivium.frontends.h2.rpc_head import RpcHead, read_head

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


class HeaderBlocks:
    """`most_bytes`: of a header list, as RFC 9113 6.5.2 counts them."""

    def __init__(self, most_bytes: int) -> None:
        self._decoder = Decoder(most_bytes)
        self._table = _Table()
        self._decoder.header_table = self._table
        self._known: dict[bytes, RpcHead] = {}
        self._most_bytes = most_bytes

    def head(self, block: bytes) -> RpcHead:
        """The head of a call. ConnectionFault for what cannot be decoded: later blocks could not be, either."""
        known = self._known.get(block)
        if known is not None:
            return known
        changes = self._table.changes
        head = read_head(self._decode(block))
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

    def _decode(self, block: bytes) -> list[tuple[bytes, bytes]]:
        _check_updates(block)
        try:
            return [(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)]
        except OversizedHeaderListError as error:
            raise ConnectionFault(
                ENHANCE_YOUR_CALM, f"A header list exceeds the limit of {self._most_bytes} bytes."
            ) from error
        except (HPACKError, IndexError) as error:
            raise ConnectionFault(COMPRESSION_ERROR, f"A header block cannot be decoded: {error}") from error
