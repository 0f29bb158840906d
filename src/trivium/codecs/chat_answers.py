"""Answers of a chat in OpenAI's form: a whole one, and the chunks of a streamed one.

Which words say why an answer ended, and how a chunk is framed, is its protocol's. On the way of every token: what is
the same in all chunks of an answer is written once. Pure.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

from trivium.types.generation import Finish, Generated, GeneratedChoice, GenerationUsage, TokenText

Words = Mapping[Finish, str]
"""A protocol's word for why a sequence has ended."""

encode_json = msgspec.json.Encoder().encode
NULL = b"null"


class ChatIdentity(msgspec.Struct, frozen=True, gc=False):
    """Says whose answer it is: its id, when it was begun (in seconds of the Unix epoch), and the model as the request
    names it.
    """

    id: str
    created: int
    model: str


class ChatChunks:
    """Writes the chunks of one answer. Where `tells_usage` every chunk has that field, and one more is the last."""

    __slots__ = ("_begun", "_has_logprobs", "_head", "_tail", "_words", "tells_usage")

    def __init__(self, identity: ChatIdentity, words: Words, has_logprobs: bool, tells_usage: bool) -> None:
        self._head = _head(identity, "chat.completion.chunk")
        self._words = words
        self._has_logprobs = has_logprobs
        self._tail = b'}],"usage":null}' if tells_usage else b"}]}"
        self._begun: set[int] = set()
        self.tells_usage = tells_usage

    def documents(self, part: Generated) -> list[bytes]:
        """Return the chunks of a part: one for each sequence, and in front of its first one that says who speaks."""
        chunks: list[bytes] = []
        for choice in part.choices:
            index = choice.index
            if index not in self._begun:
                self._begun.add(index)
                chunks.append(self._chunk(index, b'{"role":"assistant","content":""}', NULL, NULL))
            if choice.text or choice.finish is not None or (choice.tokens and self._has_logprobs):
                text = choice.text
                delta = b'{"content":%b}' % encode_json(text) if text or choice.tokens else b"{}"
                logprobs = encode_json(chat_logprobs(choice.tokens)) if self._has_logprobs else NULL
                chunks.append(self._chunk(index, delta, logprobs, finish_text(choice, self._words)))
        return chunks

    def usage(self, usage: GenerationUsage) -> bytes:
        """Return the chunk that tells how many tokens there were."""
        return b'%b],"usage":%b}' % (self._head, usage_text(usage))

    def _chunk(self, index: int, delta: bytes, logprobs: bytes, finish: bytes) -> bytes:
        return b'%b{"index":%d,"delta":%b,"logprobs":%b,"finish_reason":%b%b' % (
            self._head,
            index,
            delta,
            logprobs,
            finish,
            self._tail,
        )


def chat_completion(identity: ChatIdentity, words: Words, has_logprobs: bool, whole: Generated) -> bytes:
    """Return a whole answer."""
    choices = [
        b'{"index":%d,"message":{"role":"assistant","content":%b,"refusal":null},"logprobs":%b,"finish_reason":%b}'
        % (
            choice.index,
            encode_json(choice.text),
            encode_json(chat_logprobs(choice.tokens)) if has_logprobs else NULL,
            finish_text(choice, words),
        )
        for choice in sorted(whole.choices, key=lambda choice: choice.index)
    ]
    usage = usage_text(whole.usage) if whole.usage is not None else NULL
    return b'%b%b],"usage":%b}' % (_head(identity, "chat.completion"), b",".join(choices), usage)


def finish_text(choice: GeneratedChoice, words: Words) -> bytes:
    """Return the JSON of why a sequence has ended; null where it goes on."""
    return NULL if choice.finish is None else b'"%b"' % words[choice.finish].encode()


def usage_text(usage: GenerationUsage) -> bytes:
    """Return the JSON of counts of tokens."""
    read, made = usage.prompt_tokens, usage.new_tokens
    return b'{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}' % (read, made, read + made)


def chat_logprobs(tokens: Sequence[TokenText]) -> dict[str, object]:
    """Return log probabilities of tokens in the form of chats."""
    content = [
        {
            **_token(token.name or token.text, token.logprob),
            "top_logprobs": [_token(text, p) for _, text, p in token.alternatives],
        }
        for token in tokens
    ]
    return {"content": content, "refusal": None}


def _token(text: str, logprob: float | None) -> dict[str, object]:
    """An infinite one is as little as JSON can say of it."""
    known = LEAST if logprob is None else max(logprob, LEAST)
    return {"token": text, "logprob": known, "bytes": list(token_bytes(text))}


def token_bytes(name: str) -> bytes:
    """Return the bytes that the name of a token stands for."""
    if name.startswith(_BYTES) and _IS_BYTES.fullmatch(name):
        return bytes.fromhex(name[len(_BYTES) :].replace("\\x", ""))
    return name.encode()


_BYTES = "bytes:"
_IS_BYTES = re.compile(r"bytes:(\\x[0-9a-f]{2})+")


LEAST = -9999.0
"""Log probability of a token that is as good as impossible, as OpenAI writes it."""


def _head(identity: ChatIdentity, kind: str) -> bytes:
    fields = {"id": identity.id, "object": kind, "created": identity.created, "model": identity.model}
    return b'%b,"choices":[' % encode_json(fields)[:-1]
