"""What is made of a body is booked with its lease: once, as far as it does not lie in it, and until nobody holds it."""

import numpy as np
import pytest

from trivium.types.buffers import Lease
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Generate
from trivium.types.payload import (
    NOT_MADE,
    PER_ELEMENT,
    PackedTensor,
    Raw,
    RawPart,
    RequestPayload,
    Tensor,
    Tensors,
    cover,
)

BODY = 4096


class FakeBooks:
    def __init__(self, most: int = 10**9) -> None:
        self.size = 0
        self.most = most
        self.is_closed = False

    def add(self, size: int) -> None:
        if self.size + size > self.most:
            raise ServeError(Code.QUEUE_FULL, "no room")
        self.size += size

    def close(self) -> None:
        assert not self.is_closed
        self.is_closed = True


def leased(books: FakeBooks, beside: int = 0) -> Lease:
    lease = Lease(memoryview(bytearray(BODY)), lambda lease: None)
    lease.enter(books, beside)
    return lease


def viewing(lease: Lease) -> Tensor:
    array = np.frombuffer(lease.view, np.float32)[8:]
    return Tensor("x", DataType.FP32, array.shape, array)


def packed(lease: Lease) -> Tensor:
    return PackedTensor("x", DataType.BYTES, (1,), NOT_MADE, lease.view, 0, 100)


def apart(lease: Lease) -> Tensor:
    return Tensor("x", DataType.FP64, (1000,), np.zeros(1000))


def packed_apart(lease: Lease) -> Tensor:
    return PackedTensor("x", DataType.BYTES, (1,), NOT_MADE, bytes(500), 0, 500)


def texts(lease: Lease) -> Tensor:
    return Tensor("x", DataType.BYTES, (3,), np.array([b"a", b"b", b"c"], object))


@pytest.mark.parametrize(
    ("make", "size"),
    [(viewing, 0), (packed, 0), (apart, 8000), (packed_apart, 500), (texts, 3 * PER_ELEMENT + BODY)],
)
def test_tensors_outside_of_the_body_are_booked(make: object, size: int) -> None:
    books = FakeBooks()
    lease = leased(books)
    tensor = make(lease)  # type: ignore[operator]
    cover(Tensors((tensor,), lease))
    cover(Tensors((tensor,), lease))
    assert books.size == size


@pytest.mark.parametrize(
    ("payload", "size"), [(Raw((RawPart(b"x"),)), 0), (Generate(), BODY), (Tensors(()), 0)]
)
def test_other_payloads(payload: RequestPayload, size: int) -> None:
    books = FakeBooks()
    lease = leased(books)
    cover(type(payload)(**{**{f: getattr(payload, f) for f in payload.__struct_fields__}, "lease": lease}))
    assert books.size == size


def test_a_copy_takes_the_place_of_a_message() -> None:
    books = FakeBooks()
    books.add(8000)
    lease = leased(books, 8000)
    cover(Tensors((apart(lease),), lease))
    assert books.size == 8000
    cover(Tensors((apart(lease), apart(lease)), lease))
    assert books.size == 16000


def test_where_there_is_no_room_the_request_is_refused() -> None:
    lease = leased(FakeBooks(most=100))
    with pytest.raises(ServeError, match="no room"):
        cover(Tensors((apart(lease),), lease))


def test_books_are_closed_with_the_last_release() -> None:
    books = FakeBooks()
    lease = leased(books)
    lease.hold()
    lease.release()
    assert not books.is_closed
    lease.release()
    assert books.is_closed
    assert not lease.is_booked


def test_without_a_lease_or_books_nothing_is_booked() -> None:
    cover(Raw((RawPart(b"x"),)))
    cover(Raw((RawPart(b"x"),), lease=Lease(memoryview(b""), lambda lease: None)))
