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


class AnswerExtras(msgspec.Struct, frozen=True, gc=False):
    """Says what an answer has that OpenAI's has not: the ids of the tokens of prompt and answer, tokens that are named
    by their ids, and in each chunk of a stream the usage so far.
    """

    tells_ids: bool = False
    names_ids: bool = False
    counts_parts: bool = False


NO_EXTRAS = AnswerExtras()


class ChatChunks:
    """Writes the chunks of one answer. Where `tells_usage` every chunk has that field, and one more is the last."""

    __slots__ = ("_begun", "_extras", "_has_logprobs", "_head", "_tail", "_words", "tells_usage")

    def __init__(
        self,
        identity: ChatIdentity,
        words: Words,
        has_logprobs: bool,
        tells_usage: bool,
        extras: AnswerExtras = NO_EXTRAS,
    ) -> None:
        self._head = _head(identity, "chat.completion.chunk")
        self._words = words
        self._has_logprobs = has_logprobs
        self._extras = extras
        self._tail = usage_tail(tells_usage)
        self._begun: set[int] = set()
        self.tells_usage = tells_usage

    def documents(self, part: Generated) -> list[bytes]:
        """Return the chunks of a part: one for each sequence, and in front of its first one that says who speaks."""
        chunks: list[bytes] = []
        extras = self._extras
        if extras.counts_parts and part.usage is not None:
            self._tail = usage_tail(True, part.usage)
        for choice in part.choices:
            index = choice.index
            if index not in self._begun:
                self._begun.add(index)
                first = self._chunk(index, b'{"role":"assistant","content":""}', NULL, NULL)
                if extras.tells_ids and part.prompts:
                    first = b'%b,"prompt_token_ids":%b}' % (first[:-1], encode_json(part.prompts[0]))
                chunks.append(first)
            if (
                choice.text
                or choice.finish is not None
                or (choice.tokens and self._has_logprobs)
                or (choice.ids and extras.tells_ids)
            ):
                text = choice.text
                delta = b'{"content":%b}' % encode_json(text) if text or choice.tokens else b"{}"
                logprobs = (
                    encode_json(chat_logprobs(choice.tokens, extras.names_ids))
                    if self._has_logprobs
                    else NULL
                )
                finish = finish_text(choice, self._words)
                if extras.tells_ids:
                    finish = b'%b,"token_ids":%b' % (finish, encode_json(choice.ids))
                chunks.append(self._chunk(index, delta, logprobs, finish))
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


def chat_completion(
    identity: ChatIdentity,
    words: Words,
    has_logprobs: bool,
    whole: Generated,
    extras: AnswerExtras = NO_EXTRAS,
) -> bytes:
    """Return a whole answer."""
    choices = [
        b'{"index":%d,"message":{"role":"assistant","content":%b,"refusal":null},"logprobs":%b,"finish_reason":%b%b}'
        % (
            choice.index,
            encode_json(choice.text),
            encode_json(chat_logprobs(choice.tokens, extras.names_ids)) if has_logprobs else NULL,
            finish_text(choice, words),
            b',"token_ids":%b' % encode_json(choice.ids) if extras.tells_ids else b"",
        )
        for choice in sorted(whole.choices, key=lambda choice: choice.index)
    ]
    usage = usage_text(whole.usage) if whole.usage is not None else NULL
    if extras.tells_ids and whole.prompts:
        usage = b'%b,"prompt_token_ids":%b' % (usage, encode_json(whole.prompts[0]))
    return b'%b%b],"usage":%b}' % (_head(identity, "chat.completion"), b",".join(choices), usage)


def finish_text(choice: GeneratedChoice, words: Words) -> bytes:
    """Return the JSON of why a sequence has ended; null where it goes on."""
    return NULL if choice.finish is None else b'"%b"' % words[choice.finish].encode()


def usage_tail(tells_usage: bool, usage: GenerationUsage | None = None) -> bytes:
    """Return how a chunk ends behind its last choice's fields, with the usage so far where there is one."""
    if not tells_usage:
        return b"}]}"
    return b'}],"usage":%b}' % (NULL if usage is None else usage_text(usage))


def usage_text(usage: GenerationUsage) -> bytes:
    """Return the JSON of counts of tokens."""
    read, made, cached = usage.prompt_tokens, usage.new_tokens, usage.cached_tokens
    return (
        b'{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}'
        % (read, made, read + made, cached)
    )


def chat_logprobs(tokens: Sequence[TokenText], names_ids: bool = False) -> dict[str, object]:
    """Return log probabilities of tokens in the form of chats; with `names_ids` a token is called by its id."""
    content = [
        {
            **_token(token.id, token.name or token.text, token.logprob, names_ids),
            "top_logprobs": [_token(id, text, p, names_ids) for id, text, p in token.alternatives],
        }
        for token in tokens
    ]
    return {"content": content, "refusal": None}


def _token(id: int, text: str, logprob: float | None, names_ids: bool) -> dict[str, object]:
    """An infinite one is as little as JSON can say of it."""
    known = LEAST if logprob is None else max(logprob, LEAST)
    name = named_id(id) if names_ids else text
    return {"token": name, "logprob": known, "bytes": list(token_bytes(text))}


def named_id(id: int) -> str:
    """Return the name of a token that says its id alone."""
    return f"token_id:{id}"


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
