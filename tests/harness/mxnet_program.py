"""Program that runs under the Python of the environment `mxnet`: trains on pictures of digits, and says what it finds.

Arguments: an archive of numpy with `rows` and `digits`, a prefix for the files, and where the answers go.
"""

import sys

import mxnet as mx
import numpy as np

BATCH = 100


def graph(is_picture):
    """A small network of a loss for training, whose label nobody sends when it is served."""
    data = mx.sym.var("data", shape=(0, 64)) if is_picture else mx.sym.var("data")
    hidden = mx.sym.FullyConnected(data, num_hidden=32, name="fc1")
    active = mx.sym.Activation(mx.sym.BatchNorm(hidden, name="bn"), act_type="relu", name="relu")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(active, num_hidden=10, name="fc2"), name="softmax")


def main(data, prefix, answers):
    """Train for two epochs that are kept, and write what the second one answers."""
    mx.random.seed(7)
    np.random.seed(7)
    with np.load(data) as opened:
        rows, digits = opened["rows"] / np.float32(16), opened["digits"].astype(np.float32)
    module = mx.mod.Module(graph(False))
    module.fit(
        mx.io.NDArrayIter(rows, digits, BATCH, shuffle=True),
        num_epoch=30,
        initializer=mx.init.Xavier(),
        optimizer_params={"learning_rate": 0.1},
    )
    module.save_checkpoint(prefix, 3)
    module.init_params(mx.init.Zero(), force_init=True)
    module.save_checkpoint(prefix, 2)
    module.load_params(f"{prefix}-0003.params")
    np.save(answers, module.predict(mx.io.NDArrayIter(rows[:BATCH], None, BATCH)).asnumpy())
    graph(True).save(f"{prefix}-shaped-symbol.json")


main(*sys.argv[1:])
