"""`TextIteratorStreamerBatch`: the texts of a batch that transformers generates, piece by piece.

Source: `hf_batch_streamer.py` of TorchServe 0.12. Needs transformers, which is imported when one is made.
"""

from typing import Any


class TextIteratorStreamerBatch:
    """Given to `generate` as its streamer; iterating gives a list with `{"text": piece}` for each text."""

    def __init__(
        self,
        tokenizer: Any,
        batch_size: int,
        skip_prompt: bool = False,
        timeout: "float | None" = None,
        **decode_kwargs: Any,
    ) -> None:
        from transformers import TextIteratorStreamer

        self.batch_size = batch_size
        self.streamers: list[Any] = [
            TextIteratorStreamer(tokenizer, skip_prompt, timeout, **decode_kwargs) for _ in range(batch_size)
        ]
        self.streamer_iterators: list[Any] = [iter(streamer) for streamer in self.streamers]

    def put(self, value: Any) -> None:
        """Take the next token of each text. ValueError for another number of texts."""
        if value.shape[0] != self.batch_size:
            raise ValueError(
                f"TextIteratorStreamerBatch was made for {self.batch_size} texts, and got tokens of shape {value.shape}"
            )
        for index, streamer in enumerate(self.streamers):
            streamer.put(value[index : index + 1])

    def end(self) -> None:
        """All texts have ended."""
        for streamer in self.streamers:
            streamer.end()

    def __iter__(self) -> "TextIteratorStreamerBatch":
        return self

    def __next__(self) -> "list[dict[str, Any]]":
        pieces = [next(iterator, None) for iterator in self.streamer_iterators]
        if None in pieces:
            raise StopIteration
        return [{"text": piece} for piece in pieces]
