"""`TextClassifier`: the built-in handler for models that say what a text is about.

Source: spec sheet `torchserve`, section 8.3. This module defines exactly one class. As in the original a batch is one
request: only the first is looked at.
"""

from typing import Any

from ts.handler_utils.text_utils import ngrams_iterator
from ts.torch_handler.text_handler import TextHandler
from ts.utils.util import map_class_to_label


class TextClassifier(TextHandler):
    """Answers with the probability of every class. The model takes numbers of words, and where each text begins."""

    ngrams = 2

    def preprocess(self, data: Any) -> Any:
        """Return the numbers of the text's words and pairs of words, and its words. KeyError for one that the
        vocabulary does not have; UnicodeDecodeError for what is no UTF-8.
        """
        import torch

        text = data[0].get("data") or data[0].get("body")
        if isinstance(text, bytes | bytearray):
            text = text.decode("utf-8")
        text = self._expand_contractions(self._remove_html_tags(text).lower())
        text = self._remove_punctuation(self._remove_accented_characters(text))
        words = self._tokenize(text)
        numbers = [self.source_vocab[token] for token in ngrams_iterator(words, self.ngrams)]
        return torch.as_tensor(numbers, device=self.device), words

    def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        """Return what the model makes of a text that begins at the first number."""
        import torch

        numbers, _ = data
        return super().inference(numbers, torch.as_tensor([0], device=self.device))

    def postprocess(self, data: Any) -> list[Any]:
        """Return a dict of probabilities by label."""
        import torch

        return list(map_class_to_label(torch.softmax(data, dim=1).tolist(), self.mapping))

    def get_insights(self, text_preprocess: Any, _: Any, target: Any = 0) -> list[dict[str, Any]]:
        """Return how much each number says for a class, and the words. RuntimeError without the package captum."""
        import torch

        if self.lig is None:
            raise RuntimeError(
                "Explanations of texts need the package captum (pip install captum), and a model with a layer that is "
                "called embedding"
            )
        from captum.attr import TokenReferenceBase

        numbers, words = text_preprocess
        reference = TokenReferenceBase().generate_reference(numbers.shape[0], device=self.device).squeeze(0)
        attributions = self.lig.attribute(
            numbers,
            reference,
            additional_forward_args=torch.tensor([0]).to(self.device),
            return_convergence_delta=False,
            target=target,
        )
        importances = self.summarize_attributions(attributions).tolist()
        return [{"importances": importances, "words": self.get_word_token(words)}]
