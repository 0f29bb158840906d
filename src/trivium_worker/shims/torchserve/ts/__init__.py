"""The package `ts` that TorchServe's handlers import: the names of spec sheet `torchserve`, section 8.4.

On `sys.path` of workers only. It imports torch in functions, never at the top.
"""

from ts import unsupported as unsupported
from ts.version import __version__ as __version__
