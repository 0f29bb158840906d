"""The version of TorchServe whose behaviour handlers see."""

__version__ = "0.12.0"
