"""Two classes, of which the first is meant: the page says so, and the original refuses it as well."""


class ModelHandler:
    def initialize(self, context):
        self.initialized = True

    def handle(self, data, context):
        return ["first"] * len(data)


class Another:
    pass
