"""A handler that tells what its model-config.yaml and its own call give it."""


class Told:
    def initialize(self, context):
        self.config = context.model_yaml_config

    def handle(self, data, context):
        properties = context.system_properties
        own = {"config": self.config, "batch": len(data), "size": properties.get("batch_size")}
        return [own] * len(data)
