"""Translators of texts: the tokenizer, and the answers of each kind of model."""
