"""A class from scratch, with an entry point of every step, explanations among them."""

import os

import torch
from ts.torch_handler.base_handler import BaseHandler


class ModelHandler(BaseHandler):
    def __init__(self):
        self._context = None
        self.initialized = False
        self.explain = False
        self.target = 0

    def initialize(self, context):
        self._context = self.context = context
        self.manifest = context.manifest
        properties = context.system_properties
        gpu = properties.get("gpu_id")
        self.device = torch.device(f"cuda:{gpu}" if torch.cuda.is_available() else "cpu")
        path = os.path.join(properties.get("model_dir"), self.manifest["model"]["serializedFile"])
        self.model = torch.jit.load(path)
        self.initialized = True

    def preprocess(self, data):
        given = data[0].get("data")
        if given is None:
            given = data[0].get("body")
        return torch.tensor([given["numbers"] if isinstance(given, dict) else given])

    def inference(self, model_input):
        return self.model.forward(model_input)

    def postprocess(self, inference_output):
        return inference_output.tolist()

    def get_insights(self, tensor_data, _, target=0):
        return (tensor_data * (1 + int(target))).tolist()

    def handle(self, data, context):
        model_input = self.preprocess(data)
        if self._is_explain():
            return self.explain_handle(model_input, data)
        return self.postprocess(self.inference(model_input))
