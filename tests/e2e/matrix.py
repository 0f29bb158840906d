"""The matrix of formats and protocols, as it must be: written by hand before it was run.

Every cell is the status of the answer and, after a slash, the digit in it. The picture shows a seven, and so does the
tensor, which is the same picture prepared by the client.
"""

MODELS = {
    "Triton ONNX": "digits",
    "Triton Python": "digits-python",
    "DJL Python folder": "digits_djl",
    "TorchServe archive": "digits-torchserve",
    "bare ONNX": "digits-bare",
}

PROTOCOLS = ("v2 JSON", "v2 binary", "DJL predictions", "TorchServe predictions")

PROFILES = {
    "native": ("v2 JSON", "v2 binary", "DJL predictions"),
    "djl": ("v2 JSON", "v2 binary", "DJL predictions"),
    "torchserve": ("v2 JSON", "v2 binary", "TorchServe predictions"),
}
"""Which protocols there are under which profile; each cell is asked under every profile that has its protocol."""

EXPECTED = {
    "picture": {
        #                      v2 JSON  v2 binary  DJL    TorchServe
        "Triton ONNX":        ("415",   "415",    "415",   "415"),
        "Triton Python":      ("200/7", "200/7",  "200/7", "200/7"),
        "DJL Python folder":  ("200/7", "200/7",  "200/7", "200/7"),
        "TorchServe archive": ("200/7", "200/7",  "200/7", "200/7"),
        "bare ONNX":          ("415",   "415",    "415",   "415"),
    },
    "tensor": {
        "Triton ONNX":        ("200/7", "200/7",  "200/7", "200/7"),
        "Triton Python":      ("200/7", "200/7",  "200/7", "200/7"),
        "DJL Python folder":  ("200/7", "200/7",  "200/7", "200/7"),
        "TorchServe archive": ("200/7", "200/7",  "200/7", "200/7"),
        "bare ONNX":          ("200/7", "200/7",  "200/7", "200/7"),
    },
}  # fmt: skip
