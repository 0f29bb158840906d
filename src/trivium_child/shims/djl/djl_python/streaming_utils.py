"""Token streaming of Hugging Face models: not served yet; every name here says so when it is used."""

from djl_python.left import module_of_stand_ins

__getattr__ = module_of_stand_ins(__name__)
