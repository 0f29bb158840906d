"""The contract of RPC protocols and of their encoders, as checks that take a subject.

`test_rpc_protocols` runs every check on every protocol, and on broken ones that it must catch.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import numpy as np
from tests.contract.response_parts import TEXTS, errors, explained, floats, odd_parts, refusal_of

from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import RpcEncoder, RpcProtocol
from trivium.types.operations import Answer, ResponsePart
from trivium.types.payload import Tensor, Tensors
from trivium.types.wire import CostlyRpcAnswer, RpcAnswer, RpcCall, RpcKind

MOST_DETAILS = 4100
"""Bytes of a status's text as it travels, percent-encoded."""

_HOSTILE_METHODS = ("", "/", "//", "/x/y", "x", "\udc80", "/" + "x" * 30_000, "/a/b/c", "\0")


@dataclass(frozen=True)
class RpcMethod:
    """A method, a request that it answers, and what such a request is answered: an answer, or payloads."""

    name: str
    request: bytes = b""
    answer: Answer | None = None
    kind: RpcKind = RpcKind.UNARY
    metadata: Mapping[str, str] = field(default_factory=dict)
    ends_with_status: bool = False
    """Of a stream: an error is the status of the whole call."""

    @property
    def call(self) -> RpcCall:
        """Without its message."""
        return RpcCall(self.name, self.metadata)

    def part(self, final: bool) -> ResponsePart:
        """A part of a good answer."""
        if self.answer is None:
            return ResponsePart(floats(1.0, 2.0), final=final, model="m", version="1")
        return ResponsePart(answer=self.answer, final=final, model="m", version="1")


@dataclass(frozen=True)
class RpcSubject:
    """A protocol under test. `read` is the response message of a method as its client reads it, and raises for what is
    none; `error_in` is what it tells of an error in band, empty where it tells of none.
    """

    name: str
    make: Callable[[], RpcProtocol]
    methods: tuple[RpcMethod, ...]
    read: Callable[[str, bytes], object]
    error_in: Callable[[object], str]

    def encoders(self) -> Iterator[tuple[RpcMethod, Callable[[], RpcEncoder]]]:
        """Each method, and what makes an encoder for another request to it."""
        protocol = self.make()
        for method in self.methods:
            yield method, lambda method=method: protocol.decode(method.call, method.request)[1]


def check_answer(subject: RpcSubject, method: RpcMethod, answer: object) -> None:
    """Can this be sent? A message is the method's own; a status is one of gRPC's, and its text fits into a trailer."""
    assert isinstance(answer, RpcAnswer)
    assert 0 <= answer.code <= 16, answer.code
    assert len(quote(answer.details)) <= MOST_DETAILS, len(answer.details)
    if answer.code:
        assert answer.final, "a status ends the call"
        assert answer.message is None, "no message stands beside an error"
    else:
        assert not answer.details, answer.details
    if answer.message is not None:
        assert isinstance(answer.message, bytes)
        subject.read(method.name, answer.message)
    elif method.kind is RpcKind.UNARY:
        assert answer.code or not answer.final, "a call that went well has a response"


def check_error(subject: RpcSubject, method: RpcMethod, answer: RpcAnswer) -> None:
    """The end of one request that went wrong: a status, in a stream an error in band unless it is to end with it."""
    check_answer(subject, method, answer)
    assert answer.final
    if method.kind is RpcKind.UNARY or method.ends_with_status:
        assert answer.code, "an error is no success"
    else:
        assert answer.code == 0, "an error of one request ends the whole stream"
        assert answer.message is not None, "nobody is told"


def written(answer: RpcAnswer) -> RpcAnswer:
    """The answer as it is sent: one that is costly says nothing until it has been written."""
    if isinstance(answer, CostlyRpcAnswer):
        assert (answer.message, answer.final, answer.code, answer.details) == (None, False, 0, ""), answer
        answer = answer.write()
        assert not isinstance(answer, CostlyRpcAnswer), "it is to be written again"
    return answer


def _each_answer(subject: RpcSubject, check: Callable[[RpcMethod, ResponsePart, RpcAnswer], None]) -> None:
    """Look at what every encoder makes of every odd part, as the first of an answer and behind another one."""
    parts = odd_parts()
    for method, make in subject.encoders():
        for is_behind in (False, True) if method.kind is RpcKind.STREAM else (False,):
            for part in parts:
                encoder = make()
                try:
                    if is_behind:
                        encoder.encode(method.part(final=False))
                    check(method, part, encoder.encode(part))
                except Exception as error:
                    place = "behind a part" if is_behind else "first"
                    raise AssertionError(
                        f"{method.name}, {place}: {error!r:.500} of {part!r:.500}"
                    ) from error


# -- encoders ----------------------------------------------------------------------------------------------


def check_encoders_never_raise(subject: RpcSubject) -> None:
    """Whatever a part is, it becomes an answer."""

    def check(method: RpcMethod, part: ResponsePart, answer: RpcAnswer) -> None:
        assert isinstance(answer, RpcAnswer)

    _each_answer(subject, check)


def check_answers_can_be_sent(subject: RpcSubject) -> None:
    """Whatever a part is, what it becomes is a message of the method, or a status with a text that fits."""
    _each_answer(subject, lambda method, part, answer: check_answer(subject, method, answer))


def check_final_parts_end_the_answer(subject: RpcSubject) -> None:
    """Behind a final part nothing comes: its answer must be final, or the client waits for ever."""

    def check(method: RpcMethod, part: ResponsePart, answer: RpcAnswer) -> None:
        assert answer.final or not part.final

    _each_answer(subject, check)


def check_answers_end_once(subject: RpcSubject) -> None:
    """A good answer has a message and no status. In a stream parts are sent as they come, and exactly the last one is
    final; who answers once refuses the first of several payloads.
    """
    for method, make in subject.encoders():
        with explained(method.name):
            answer = make().encode(method.part(final=True))
            check_answer(subject, method, answer)
            assert (answer.code, answer.final) == (0, True), answer
            assert subject.error_in(subject.read(method.name, answer.message or b"")) == ""
            if method.kind is RpcKind.UNARY:
                if method.answer is None:
                    check_error(subject, method, make().encode(method.part(final=False)))
                continue
            for last in (ResponsePart(), method.part(final=True)):
                encoder = make()
                sent = [encoder.encode(method.part(final=False)) for _ in range(3)] + [encoder.encode(last)]
                assert [answer.final for answer in sent] == [False, False, False, True]
                assert all(answer.code == 0 for answer in sent)
                assert all(answer.message for answer in sent[:-1]), "a part was swallowed"


def check_large_answers_are_written_elsewhere(subject: RpcSubject) -> None:
    """Tensors of 64 MiB keep nobody waiting, and are answered as small ones are: in order, by one final part."""
    large = floats(*(0.5,) * 8)
    array = np.broadcast_to(large.items[0].array, (2**21, 8)).copy()
    tensors = Tensors((Tensor("y", DataType.FP32, array.shape, array),))
    for method, make in subject.encoders():
        if method.answer is not None:
            continue
        with explained(method.name):
            encoder = make()
            finals = (True,) if method.kind is RpcKind.UNARY else (False, False, True)
            for final in finals:
                answer = encoder.encode(ResponsePart(tensors, final=final, model="m", version="1"))
                assert isinstance(answer, CostlyRpcAnswer), "it was written at once"
                answer = written(answer)
                check_answer(subject, method, answer)
                assert (answer.code, answer.final) == (0, final), answer
                assert len(answer.message or b"") > array.nbytes


def check_failures_behind_the_first_part(subject: RpcSubject) -> None:
    """A failure behind the first part of a stream ends that answer, and tells the client."""
    for code in Code:
        if code is not Code.CANCELLED:
            _check_tails(subject, code)


def check_cancellation_in_mid_stream(subject: RpcSubject) -> None:
    """A cancelled answer ends as a failed one does, and other answers of the stream go on."""
    _check_tails(subject, Code.CANCELLED)
    for method, make in subject.encoders():
        if method.kind is RpcKind.STREAM:
            with explained(method.name):
                left, stays = make(), make()
                for encoder in (left, stays):
                    encoder.encode(method.part(final=False))
                left.encode(ResponsePart(error=ServeError(Code.CANCELLED, "The client left.")))
                following = stays.encode(method.part(final=False))
                assert (following.final, following.code) == (False, 0), following
                assert following.message


def _check_tails(subject: RpcSubject, code: Code) -> None:
    for method, make in subject.encoders():
        if method.kind is RpcKind.STREAM:
            for error in errors(code):
                with explained(f"{method.name}, behind a part {code}: {error.message[:80]!r}"):
                    encoder = make()
                    encoder.encode(method.part(final=False))
                    answer = encoder.encode(ResponsePart(error=error, model="m"))
                    check_error(subject, method, answer)
                    _check_told(subject, method, error, answer)


def check_requests_share_nothing(subject: RpcSubject) -> None:
    """An answer is the same whatever other requests were answered before, or are in the middle of it."""
    crowded = subject.make()
    for method in subject.methods:
        for error in (None, ServeError(Code.INTERNAL, "It failed.")):
            _, other = crowded.decode(method.call, method.request)
            other.encode(method.part(final=False))
            other.encode(ResponsePart(error=error))
    for method in subject.methods:
        for part in (
            method.part(final=True),
            ResponsePart(error=ServeError(Code.MODEL_FAILED, "It failed.")),
        ):
            encoders = [
                protocol.decode(method.call, method.request)[1] for protocol in (crowded, subject.make())
            ]
            crowd, alone = (encoder.encode(part) for encoder in encoders)
            assert (crowd.code, crowd.final, crowd.details) == (alone.code, alone.final, alone.details), (
                method.name
            )
            read = [subject.read(method.name, answer.message or b"") for answer in (crowd, alone)]
            assert read[0] == read[1], method.name


# -- refusals ----------------------------------------------------------------------------------------------


def check_refusals_have_a_form(subject: RpcSubject) -> None:
    """An error is refused in the protocol's own form, before the operation and in its place."""
    protocol = subject.make()
    for method, make in subject.encoders():
        for code in Code:
            for error in errors(code):
                with explained(f"{method.name} refused {code}: {error.message[:80]!r}"):
                    answer = protocol.refuse(method.call, error)
                    check_error(subject, method, answer)
                    _check_told(subject, method, error, answer)
                if error.info is None:  # with one it may be no error at all to some method
                    with explained(f"{method.name} answered {code}: {error.message[:80]!r}"):
                        answer = make().encode(ResponsePart(error=error, model="m"))
                        check_error(subject, method, answer)
                        _check_told(subject, method, error, answer)


def _check_told(subject: RpcSubject, method: RpcMethod, error: ServeError, answer: RpcAnswer) -> None:
    """Who sends a text gets one."""
    if error.message:
        said = answer.details
        if answer.message is not None:
            said = subject.error_in(subject.read(method.name, answer.message))
        assert said, "the error has no text"


def check_every_code_has_a_status(subject: RpcSubject) -> None:
    """Every code has a status of gRPC that is an error, and a call that is cancelled or failed by us says so."""
    protocol = subject.make()
    unary = next(method for method in subject.methods if method.kind is RpcKind.UNARY)
    for code in Code:
        with explained(str(code)):
            status = protocol.refuse(unary.call, ServeError(code, "It failed.")).code
            assert 1 <= status <= 16, status
            if code in _STATUSES:
                assert status == _STATUSES[code], status


_STATUSES = {Code.CANCELLED: 1, Code.INVALID: 3, Code.NOT_FOUND: 5, Code.INTERNAL: 13, Code.NOT_READY: 14}
"""Those that no sheet has otherwise: the meaning of gRPC's own numbers."""


# -- requests ----------------------------------------------------------------------------------------------


def check_methods(subject: RpcSubject) -> None:
    """Each method has its kind; for any other name, however odd, UNSUPPORTED is raised, which can be answered."""
    protocol = subject.make()
    for method in subject.methods:
        with explained(method.name):
            assert protocol.kind(method.name) is method.kind
    odd = [method.name + end for method in subject.methods for end in ("x", "/", " ", "\udc80")]
    odd += [method.name[1:] for method in subject.methods]
    for name in (*_HOSTILE_METHODS, *odd):
        with explained(f"{name[:80]!r}"):
            refusal = refusal_of(lambda name=name: protocol.kind(name))
            assert refusal is not None, "it is served"
            assert refusal.code is Code.UNSUPPORTED, refusal.code
            check_error(subject, RpcMethod(name), protocol.refuse(RpcCall(name), refusal))


def check_hostile_messages(subject: RpcSubject) -> None:
    """A message is an operation or a refusal, whatever it holds and wherever it is cut off."""
    protocol = subject.make()
    others = [method.request for method in subject.methods]
    hostile = [b"\0", b"\xff" * 40, b"\x0a\xff\xff\xff\xff\x7f", b"\x0a\x02\xff\xfe", b"\x0b" * 200, *others]
    metadata = ({}, {"triton_grpc_error": "true"}, *({"x-a": text, text: "1"} for text in TEXTS))
    for method in subject.methods:
        cuts = [method.request[:cut] for cut in range(len(method.request))]
        flips = [_flipped(method.request, at) for at in range(0, len(method.request), 3)]
        for message in (*hostile, *cuts, *flips, method.request * 2):
            check_request(subject, protocol, method, method.call, message)
        for some in metadata:
            check_request(subject, protocol, method, RpcCall(method.name, some, 0.0), method.request)


def _flipped(message: bytes, at: int) -> bytes:
    return message[:at] + bytes([message[at] ^ 0x81]) + message[at + 1 :]


def check_request(
    subject: RpcSubject, protocol: RpcProtocol, method: RpcMethod, call: RpcCall, message: bytes
) -> None:
    """It is decoded, or refused by a ServeError that can be answered."""
    with explained(f"{call.method} {dict(call.metadata)!r:.200} {message[:80]!r}"):
        try:
            _, encoder = protocol.decode(call, message)
        except ServeError as error:
            answer = protocol.refuse(call, error)
            assert answer.final
        else:
            answer = encoder.encode(ResponsePart(error=ServeError(Code.INTERNAL, "It failed.")))
        check_answer(subject, method, answer)


CHECKS: Mapping[str, Callable[[RpcSubject], None]] = {
    check.__name__.removeprefix("check_"): check
    for check in (
        check_encoders_never_raise,
        check_answers_can_be_sent,
        check_final_parts_end_the_answer,
        check_answers_end_once,
        check_large_answers_are_written_elsewhere,
        check_failures_behind_the_first_part,
        check_cancellation_in_mid_stream,
        check_requests_share_nothing,
        check_refusals_have_a_form,
        check_every_code_has_a_status,
        check_methods,
        check_hostile_messages,
    )
}
"""The contract, by name."""
