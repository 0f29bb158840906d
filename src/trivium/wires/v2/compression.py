"""Content codings on this wire: which one a body came in, and answers written in the one that a client likes best.

Source: RFC 9110, sections 8.4 and 12.5.3; spec sheet `triton`, section 4.8. Inference-Header-Content-Length counts
what is uncompressed, both ways.
"""

import msgspec

from trivium.codecs.compression import CODINGS, LEAST_BYTES, MOST_BYTES, deflate
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Encoder
from trivium.types.operations import ResponsePart
from trivium.types.wire import CostlyAnswer, HttpAnswer, costly
from trivium.wires.v2 import request_reasons


def coding_of(field: bytes) -> str:
    """The coding that a Content-Encoding field names; empty for none. UNSUPPORTED_MEDIA for any other."""
    name = field.strip().lower().removeprefix(b"x-").decode("latin-1")
    if name in ("", "identity"):
        return ""
    if name not in CODINGS:
        raise ServeError(
            Code.UNSUPPORTED_MEDIA,
            f"The body has Content-Encoding {field[:40].decode('latin-1')!r}; served are {', '.join(CODINGS)} and "
            "none. Send it so.",
            info=ErrorInfo.of(request_reasons.NO_CODING),
        )
    return name


class CompressedEncoder(msgspec.Struct, frozen=True, gc=False):
    """Writes what another encoder writes, in a coding where that is worth it: whole answers of middling size."""

    plain: Encoder
    coding: str

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """The answer, compressed or as it is; an error and what is streamed as they are."""
        answer = self.plain.encode(part)
        if type(answer) is CostlyAnswer:
            write = answer.write
            return costly(lambda: self._packed(write()))
        return self._packed(answer)

    def _packed(self, answer: HttpAnswer) -> HttpAnswer:
        if not (answer.final and answer.status == 200 and LEAST_BYTES <= answer.size <= MOST_BYTES):
            return answer
        packed = deflate(answer.buffers, self.coding)
        fields = answer.fields + b"Content-Encoding: %s\r\nVary: Accept-Encoding\r\n" % self.coding.encode()
        return HttpAnswer(200, fields, (packed,), len(packed))
