"""NVIDIA Triton Inference Server, as far as it differs from our own."""

from trivium.server_record import ServerRecord
from trivium.servers.triton.words.trace_text import SPAN_NAMES

SERVER = ServerRecord(
    name="triton",
    protocols=("v2",),
    original="v2",
    presents=("triton", "2.51.0"),
    takes_any_host=True,
    trace_files_follow=False,
    traces_nowhere=True,
    binds_answers=False,
    span_names=SPAN_NAMES,
)
