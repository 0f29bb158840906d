"""The fifth axis: a translator turns a client's picture or text into the tensors of a model, and its outputs into JSON.

Pictures need Pillow and texts the package `tokenizers`; both come with `pip install 'trivium[translators]'` and are
imported when a translator is made.
"""
