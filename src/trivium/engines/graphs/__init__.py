"""Engines of graphs: files of libraries that tell named tensors and compute them from named tensors."""
