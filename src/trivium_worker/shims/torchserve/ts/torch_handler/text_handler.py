"""`TextHandler`: texts become numbers by the vocabulary of the archive; to be extended.

Source: spec sheet `torchserve`, section 8.3. Needs torch. The methods that handlers extend keep the original's names,
with the underscore that they have there.
"""

import os
import string
import unicodedata
from abc import ABC
from typing import Any

from ts.handler_utils.text_utils import get_tokenizer, without_markup
from ts.torch_handler import contractions, loading
from ts.torch_handler.base_handler import BaseHandler

_MARKS = str.maketrans("", "", string.punctuation)
_WORD_BEGINS = "\u0120"
"""What byte-level tokenizers have in front of a word."""

VOCABULARY = "source_vocab.pt"


class TextHandler(BaseHandler, ABC):
    """Has the vocabulary of source_vocab.pt, number by word, as `source_vocab`, and what cleans a text."""

    def __init__(self) -> None:
        super().__init__()
        self.source_vocab: Any = None
        self.tokenizer = get_tokenizer("basic_english")
        self.input_text: str | None = None
        self.lig: Any = None

    def initialize(self, context: Any) -> None:
        """Load the model, its vocabulary, and what explains its answers, where the package captum is installed."""
        super().initialize(context)
        self.initialized = False
        named = (self.manifest or {}).get("model", {}).get("sourceVocab")
        path = named or self.get_source_vocab_path(context)
        self.source_vocab = loading.load_vocabulary(path, self.model_yaml_config)
        self.lig = _layer_gradients(self.model)
        self.initialized = True

    def get_source_vocab_path(self, ctx: Any) -> str:
        """Return where the vocabulary lies. FileNotFoundError where the archive has none."""
        path = os.path.join(ctx.system_properties.get("model_dir"), VOCABULARY)
        if not os.path.isfile(path):
            raise FileNotFoundError(
                f"{path} is not there: a handler for texts needs a vocabulary, a dict of numbers by word. Save it with "
                "torch.save, and pack it with --extra-files"
            )
        return path

    def _expand_contractions(self, text: str) -> str:
        return contractions.expand(text)

    def _remove_accented_characters(self, text: str) -> str:
        return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()

    def _remove_html_tags(self, text: str) -> str:
        return without_markup(text)

    def _remove_punctuation(self, text: str) -> str:
        return text.translate(_MARKS)

    _remove_puncutation = _remove_punctuation  # as an older version spells it

    def _tokenize(self, text: str) -> list[str]:
        return self.tokenizer(text)

    def get_word_token(self, input_tokens: list[str]) -> list[str]:
        """Return the tokens as words, without the sign with which byte-level tokenizers begin one."""
        return [token.replace(_WORD_BEGINS, "") for token in input_tokens]

    def summarize_attributions(self, attributions: Any) -> Any:
        """Return how much each token says, in proportion to all of them."""
        import torch

        shares = torch.softmax(attributions, dim=_last_but(attributions))
        return shares / torch.norm(shares.sum(dim=-1))


def _last_but(tensor: Any) -> int:
    """Return the dimension that the original leaves to torch: the first of one and of three, else the second."""
    return 0 if tensor.dim() in (0, 1, 3) else 1


def _layer_gradients(model: Any) -> Any:
    try:
        from captum.attr import LayerIntegratedGradients
    except ImportError:
        return None
    embedding = getattr(model, "embedding", None)
    return None if embedding is None else LayerIntegratedGradients(model, embedding)
