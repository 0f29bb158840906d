"""A rich and valid config.pbtxt: every key that is served stands in it at least once."""

RICH = """\
# every key that is served
name: "rich"
platform: "onnxruntime_onnx"
backend: "onnxruntime"
version_policy {
  specific { versions: [ 1, 3 ] }
}
max_batch_size: 16
input [
  {
    name: "pixels"
    data_type: TYPE_FP32
    dims: [ 3, -1 ]
    optional: false
  },
  {
    name: "words"
    data_type: TYPE_STRING
    dims: [ 1 ]
    optional: true
  }
]
output {
  name: "scores"
  data_type: TYPE_FP16
  dims: 10
}
optimization {
  graph {
    level: 1
  }
}
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 200
  priority_levels: 3
  default_priority_level: 2
  default_queue_policy {
    timeout_action: REJECT
    default_timeout_microseconds: 5000
    allow_timeout_override: true
    max_queue_size: 64
  }
  priority_queue_policy {
    key: 1
    value {
      timeout_action: DELAY
      default_timeout_microseconds: 9000
      allow_timeout_override: false
      max_queue_size: 8
    }
  }
}
instance_group {
  name: "on_cpu"
  count: 2
  kind: KIND_CPU
}
instance_group {
  kind: KIND_GPU
  gpus: [ 0, 1 ]
}
default_model_filename: "net.onnx"
model_transaction_policy {
  decoupled: true
}
parameters {
  key: "intra_op_thread_count"
  value {
    string_value: "2"
  }
}
model_warmup {
  name: "warm"
  batch_size: 4
  count: 3
  inputs {
    key: "pixels"
    value {
      data_type: TYPE_FP32
      dims: [ 3, 8 ]
      random_data: true
    }
  }
}
model_warmup {
  name: "file"
  batch_size: 2
  inputs {
    key: "pixels"
    value {
      data_type: TYPE_FP32
      dims: [ 3, 8 ]
      input_data_file: "pixels.bin"
    }
  }
}
model_warmup {
  name: "zero"
  batch_size: 1
  inputs {
    key: "pixels"
    value {
      data_type: TYPE_FP32
      dims: [ 3, 8 ]
      zero_data: true
    }
  }
}
"""
GPUS = 2

OTHER_POLICIES = (
    "version_policy {\n  latest {\n    num_versions: 2\n  }\n}\n",
    "version_policy {\n  all {\n  }\n}\n",
)
"""The two other choices of the one oneof of which the rich file can hold only one member."""
