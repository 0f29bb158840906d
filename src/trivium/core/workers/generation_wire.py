"""Requests to generate and what is generated, as bytes between the server and the process that hosts an engine.

Both sides are ours and have msgspec; `trivium_worker` passes the bytes on without reading them.
"""

from collections.abc import Mapping

import msgspec

from trivium.types.generation import Embeddings, Generate, Generated, Sampling, joined
from trivium_worker.wire import values

Piece = bytes | memoryview


class _RequestText(msgspec.Struct, frozen=True, gc=False):
    """A request as text: all but its embeddings and its buffer."""

    prompts: tuple[str, ...] | None = None
    messages: tuple[Mapping[str, object], ...] | None = None
    ids: tuple[tuple[int, ...], ...] | None = None
    sampling: Sampling = Sampling()
    streams: bool = False
    echoes: bool = False
    tools: tuple[Mapping[str, object], ...] | None = None
    template_arguments: Mapping[str, object] = {}
    scores_prompts: bool = False
    tells_prompts: bool = False
    counts_parts: bool = False
    adds_special: bool | None = None
    cache_salt: str = ""
    adapter: str = ""


_read_request = msgspec.json.Decoder(_RequestText).decode
_write = msgspec.json.Encoder().encode
_read_parts = msgspec.json.Decoder(list[Generated]).decode


def request_text(generate: Generate) -> tuple[dict[str, object], list[Piece]]:
    """Return the description of a request, and its data."""
    embeds = generate.embeds
    plain = msgspec.structs.replace(generate, lease=None, embeds=None)
    text = _write(plain)
    if embeds is None:
        return {"generate": [len(text)]}, [text]
    return {"generate": [len(text), embeds.tokens, embeds.width]}, [text, embeds.data]


def read_request(told: values.Generate) -> Generate:
    """The request; its embeddings view what came."""
    text = _read_request(told.data)
    embeds = None if told.shape is None else Embeddings(*told.shape, memoryview(told.embeds))
    return Generate(
        text.prompts,
        text.messages,
        text.ids,
        embeds,
        text.sampling,
        text.streams,
        text.echoes,
        text.tools,
        text.template_arguments,
        scores_prompts=text.scores_prompts,
        tells_prompts=text.tells_prompts,
        counts_parts=text.counts_parts,
        adds_special=text.adds_special,
        cache_salt=text.cache_salt,
        adapter=text.adapter,
    )


def write_part(part: Generated) -> values.Generated:
    """One part, as the runtime passes it on."""
    return values.Generated([_write(part)])


def read_parts(told: values.Generated) -> Generated:
    """All parts that came at once, joined. ValueError for what is none, or nothing."""
    parts = [part for piece in told.pieces for part in _read_parts(piece)]
    if not parts:
        raise ValueError("no part was generated")
    return joined(parts)
