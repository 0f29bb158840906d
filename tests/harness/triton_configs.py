"""A rich and valid config.pbtxt: every key that is served stands in it at least once."""

RICH = """\
# every key that is served
name: "rich"
platform: "onnxruntime_onnx"
backend: "onnxruntime"
runtime: "libtriton_onnxruntime.so"
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
    reshape {
      shape: [ 1, 1 ]
    }
    optional: true
  }
]
output {
  name: "scores"
  data_type: TYPE_FP16
  dims: 10
  reshape {
    shape: [ 2, 5 ]
  }
  label_filename: "labels.txt"
}
optimization {
  graph {
    level: 1
  }
  execution_accelerators {
    gpu_execution_accelerator: [
      {
        name: "tensorrt"
        parameters {
          key: "precision_mode"
          value: "FP16"
        }
      }
    ]
    cpu_execution_accelerator {
      name: "openvino"
      parameters {
        key: "device_type"
        value: "CPU"
      }
    }
  }
}
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 200
  preserve_ordering: true
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
  rate_limiter {
    priority: 2
    resources [
      {
        name: "memory"
        global: true
        count: 3
      }
    ]
  }
}
default_model_filename: "net.onnx"
model_transaction_policy {
  decoupled: true
}
metric_tags {
  key: "team"
  value: "red"
}
model_metrics {
  metric_control {
    metric_identifier {
      family: "nv_inference_first_response_histogram_ms"
    }
    histogram_options {
      buckets: [1.5, 50]
    }
  }
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

ENSEMBLE = """\
platform: "ensemble"
max_batch_size: 8
input { name: "words" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "scores" data_type: TYPE_FP32 dims: [ 3 ] }
response_cache {
  enable: true
}
ensemble_scheduling {
  max_inflight_requests: 3
  step {
    model_name: "tokens"
    model_version: -1
    input_map {
      key: "text"
      value: "words"
    }
    output_map {
      key: "ids"
      value: "numbers"
    }
  }
  step [
    {
      model_name: "classes"
      model_version: 3
      input_map {
        key: "x"
        value: "numbers"
      }
      output_map {
        key: "y"
        value: "scores"
      }
    }
  ]
}
"""

DIRECT = """\
max_batch_size: 8
sequence_batching {
  max_sequence_idle_microseconds: 5000000
  control_input {
    name: "START"
    control {
      kind: CONTROL_SEQUENCE_START
      int32_false_true: [ 0, 1 ]
    }
  }
  control_input {
    name: "READY"
    control {
      kind: CONTROL_SEQUENCE_READY
      fp32_false_true: [ 0, 1 ]
    }
  }
  control_input {
    name: "END"
    control {
      kind: CONTROL_SEQUENCE_END
      bool_false_true: [ false, true ]
    }
  }
  control_input {
    name: "CORRID"
    control {
      kind: CONTROL_SEQUENCE_CORRID
      data_type: TYPE_UINT64
    }
  }
  direct {
    max_queue_delay_microseconds: 100
    minimum_slot_utilization: 0.5
  }
  state {
    input_name: "sum_in"
    output_name: "sum_out"
    data_type: TYPE_INT32
    dims: [ 1 ]
    initial_state {
      name: "zeros"
      data_type: TYPE_INT32
      dims: [ 1 ]
      zero_data: true
    }
  }
  state {
    input_name: "words_in"
    output_name: "words_out"
    data_type: TYPE_FP32
    dims: [ -1 ]
    initial_state {
      name: "from_file"
      data_type: TYPE_FP32
      dims: [ 2 ]
      data_file: "words.bin"
    }
  }
}
"""

OLDEST = """\
max_batch_size: 8
sequence_batching {
  iterative_sequence: true
  oldest {
    max_candidate_sequences: 4
    preferred_batch_size: [ 2, 4 ]
    max_queue_delay_microseconds: 100
    preserve_ordering: true
  }
}
"""

OTHER_POLICIES = (
    ENSEMBLE,
    DIRECT,
    OLDEST,
    "version_policy {\n  latest {\n    num_versions: 2\n  }\n}\n",
    "version_policy {\n  all {\n  }\n}\n",
)
"""The two other choices of the one oneof of which the rich file can hold only one member."""

BATCHES = """\
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }
batch_input {
  kind: BATCH_ACCUMULATED_ELEMENT_COUNT
  target_name: "sums"
  data_type: TYPE_INT32
  source_input: "x"
}
batch_output {
  target_name: "y"
  kind: BATCH_SCATTER_WITH_INPUT_SHAPE
  source_input: "x"
}
"""
