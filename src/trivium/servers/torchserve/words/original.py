"""Names the TorchServe whose behaviour clients and handlers see."""

SERVER_VERSION = "0.12.0"
