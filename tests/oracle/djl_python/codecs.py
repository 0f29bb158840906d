"""Calls of `encode_decode` and `np_util`: name -> expressions that are right, expressions that are wrong."""


def _decoded(body: str, *arguments: str) -> str:
    return f"decode(made([('data', {body})]), {', '.join(arguments)})"


def _encoded(prediction: str, content_type: str, key: str = "None") -> str:
    return f"[o := Output(), encode(o, {prediction}, {content_type}, {key}), o][-1]"


_DECODE = {
    "encode_decode.decode": (
        (
            _decoded("b''", "None"),
            _decoded("b'{\"a\": 1}'", "None"),
            _decoded("b'[1]'", "''"),
            "decode(made(), None)",
            _decoded("b'[1]'", "'application/json'"),
            _decoded("b'[1]'", "'application/json; charset=utf-8'"),
            _decoded("b'hi'", "'text/plain; charset=utf-8'"),
            _decoded("b'inputs\\na\\nb\\n'", "'text/csv'"),
            _decoded("b'question,context\\na,b\\n'", "'text/csv'"),
            _decoded("b'Question,x\\na,b\\n'", "'text/csv'"),
            _decoded("b'1,2\\n3,4\\n'", "'text/csv'", "require_csv_headers=False"),
            _decoded("b'1,2\\n'", "'text/csv'", "None", "False"),
            _decoded("png()", "'image/png'"),
            _decoded("b'wav'", "'audio/wav'"),
            _decoded("npz(np.ones(2))", "'tensor/npz'"),
            _decoded("ndlist(np.ones(2))", "'tensor/ndlist'"),
            _decoded("ndlist(np.ones(2))", "'application/x-npy'"),
            _decoded("b'a=1'", "'application/x-www-form-urlencoded'"),
            _decoded("b'x'", "'application/octet-stream'"),
            _decoded("b'x'", "'tensor/ndlist; a=b'"),
            "decode(made([('k', b'[1]'), ('data', b'[2]')]), 'application/json', 'k')",
            "decode(made([('k', b'inputs\\na\\n'), ('data', b'inputs\\nb\\n')]), 'text/csv', 'k')",
        ),
        (
            _decoded("b'{'", "'application/json'"),
            _decoded("b'no'", "None"),
            _decoded("b'a,b\\n1,2\\n'", "'text/csv'"),
            _decoded("b''", "'text/csv'"),
            _decoded("b'inputs\\n'", "'text/csv'"),
            _decoded("b'a,b\\n1,2\\n'", "'text/csv'", "require_csv_headers=False"),
            _decoded("b'1,2\\n3\\n'", "'text/csv'", "require_csv_headers=False"),
            _decoded("b'no'", "'tensor/npz'"),
            _decoded("b'no'", "'tensor/ndlist'"),
            _decoded("b'\\xff'", "'text/plain'"),
            "decode(made(), 'text/plain')",
            _decoded("b'x'", "'application/json'", "key='z'"),
        ),
    ),
    "encode_decode.decode_csv": (
        (
            "decode_csv(made([('data', b'inputs,x\\na,1\\n')]))",
            "decode_csv(made([('data', b'context\\na\\n')]), require_headers=True)",
            "decode_csv(made([('data', b'1\\n2\\n')]), False)",
            "decode_csv(made([('data', b'1.5,-2e3\\n')]), require_headers=False)",
        ),
        (
            "decode_csv(made([('data', b'x\\n1\\n')]))",
            "decode_csv(made([('data', b'x\\n1\\n')]), False)",
            "decode_csv(made())",
        ),
    ),
}

_ENCODE = {
    "encode_decode.encode": (
        (
            _encoded("[1]", "None"),
            _encoded("{'a': 'ä'}", "''"),
            _encoded("'a'", "'application/json; x'", "'k'"),
            _encoded("[np.ones(2)]", "'tensor/ndlist'"),
            _encoded("np.ones(2)", "'x/y'", "'k'"),
            _encoded("[{'a': 1, 'b': 'x,y'}]", "'text/csv'"),
            _encoded("[[1, 2], [3, 4]]", "'text/csv'"),
            "[o := Output(), encode(o, [np.ones(2)], 'tensor/npz'), o.properties, load(o.content.value_at(0))][-2:]",
            "[o := Output(), encode(o, np.ones(2), 'tensor/npz'), load(o.content.value_at(0))][-1]",
            "encode(Output(), [1], None)",
        ),
        (
            _encoded("object()", "'application/json'"),
            _encoded("[1]", "'tensor/ndlist'"),
            _encoded("float('nan')", "None"),
            _encoded("None", "'tensor/ndlist'"),
        ),
    ),
    "encode_decode.encode_csv": (
        (
            "encode_csv([{'a': 1, 'b': 'x,y'}])",
            "encode_csv([{'a': 1}, {'a': None}])",
            "encode_csv(({'a': row} for row in range(2)))",
            "encode_csv([[1, 2], [3, 4]])",
        ),
        ("encode_csv([])", "encode_csv([{'a': 1}, {'b': 2}])", "encode_csv(3)"),
    ),
}

_NUMPY = {
    "np_util.to_nd_list": (
        (
            "to_nd_list([])",
            "to_nd_list([np.float32([[1, 2]])])",
            "to_nd_list(np.float64([0.5]))",
            "to_nd_list([np.float16([1]), np.int8([-1]), np.int16([2]), np.int32([3]), np.int64([4])])",
            "to_nd_list([np.uint8([1]), np.uint16([2]), np.uint32([3]), np.uint64([4])])",
            "to_nd_list([np.zeros((0, 2), 'i8')])",
            "to_nd_list([np.array(3, 'i4')])",
            "to_nd_list([np.float32(1.5)])",
            "to_nd_list([np.asfortranarray(np.int16([[1, 2], [3, 4]]))])",
            "to_nd_list([np.int16([[1, 2], [3, 4]])[:, 1]])",
            "to_nd_list([np.array([True, False])])",
            "to_nd_list([np.int32([1]).astype('>i4')])",
            "to_nd_list([np.array(['ä', 'bc'])])",
            "type(to_nd_list([])).__name__",
        ),
        (
            "to_nd_list([1])",
            "to_nd_list('text')",
            "to_nd_list((np.ones(1), np.ones(1)))",
            "to_nd_list([[1, 2]])",
            "to_nd_list([np.ones(1, 'c8')])",
            "to_nd_list([np.array(['2024-01-02'], 'M8[D]')])",
        ),
    ),
    "np_util.from_nd_list": (
        (
            "from_nd_list(to_nd_list([np.float32([[1, 2]]), np.int64([3])]))",
            "from_nd_list(to_nd_list([]))",
            "from_nd_list(bytes(to_nd_list(np.float16([[[1]]]))))",
            "from_nd_list(npz(np.ones(2), np.int8([1])))",
            "from_nd_list(to_nd_list(np.array(3, 'i4')))",
            "from_nd_list(to_nd_list(np.zeros((0, 2), 'u2')))",
            "from_nd_list(array_of('INT16', '>', b'\\x01\\x02'))",
            "from_nd_list(array_of('FLOAT32', '<', bytes(4), name='x'))",
            "from_nd_list(array_of('INT8', '<', b'\\x07', sparse='DENSE'))",
            "from_nd_list(array_of('BOOL', '<', b'\\x01'))",
            "from_nd_list(array_of('BOOLEAN', '<', b'\\x01'))",
            "from_nd_list(to_nd_list([np.array([True])]))",
            "from_nd_list(array_of('INT8', '<', b'\\x07', version=2))",
            "from_nd_list(to_nd_list([np.ones(1)]) + b'rest')",
            "[a := from_nd_list(to_nd_list(np.ones(1)))[0], a.flags.writeable][-1]",
        ),
        (
            "from_nd_list(b'')",
            "from_nd_list(None)",
            "from_nd_list(array_of('FLOAT32', '<', bytes(4), magic='NDAS'))",
            "from_nd_list(array_of('FLOAT32', '<', bytes(4), version=4))",
            "from_nd_list(array_of('FLOAT32', '<', bytes(3)))",
            "from_nd_list(array_of('FLOAT33', '<', bytes(4)))",
            "from_nd_list(to_nd_list(np.ones(4))[:-1])",
            "from_nd_list(to_nd_list(np.ones(4))[:20])",
            "from_nd_list(b'PK no archive')",
            "from_nd_list(bytes(3))",
        ),
    ),
}

CALLS = _DECODE | _ENCODE | _NUMPY
