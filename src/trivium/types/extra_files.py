"""The parameter by which a model names texts that lie in its own archive, for its translator."""

EXTRA_FILES = "extra_files"
"""Names of extra files of an archive of PyTorch, with commas between them. Source: DJL's `option.extraFiles`."""
