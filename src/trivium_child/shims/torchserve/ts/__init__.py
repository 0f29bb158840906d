"""What a TorchServe handler imports as `ts`: the names of spec sheet `torchserve`, section 8.4, without TorchServe.

On `sys.path` of workers only. It imports torch in functions, never at the top, and nothing of the worker around it.
"""

from ts.version import __version__ as __version__
