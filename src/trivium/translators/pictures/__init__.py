"""Translators of pictures: the pipeline to a tensor, and the answers of each kind of model."""
