"""KServe's v1 protocol, which is TensorFlow Serving's: rows as instances in, predictions out."""
