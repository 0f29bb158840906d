"""The fifth axis: a translator turns a client's picture or text into the tensors of a model, and its outputs into JSON.

Texts need the package `tokenizers`, which comes with `pip install 'trivium[translators]'`; it and Pillow are
imported when a translator is made.
"""
