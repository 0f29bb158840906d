"""Calls of Output: name -> expressions that are right, expressions that are wrong."""

_NESTED = (
    "{'ä': np.float32(1.5), 'n': np.int64(3), 'a': np.arange(3), 't': datetime(2024, 1, 2, 3), 'z': None}"
)

_HEAD = {
    "Output": (
        (
            "Output()",
            "Output(201, 'made')",
            "Output(code=204, message='No content')",
            "Output().finalize_function",
        ),
        ("Output(1, 2, 3)",),
    ),
    "Output.__str__": (
        (
            "str(Output())",
            "str(Output(400, 'bad').add_property('A', 'b').add_property('n', 1))",
            "str(Output().add(bytearray(b'x'), 'k').add(bytearray(b'y')))",
            "str(Output().add('text', 'k'))",
            "str(Output().add(bytes(2), 'k'))",
        ),
        ("str(Output().add_property('a', object()))",),
    ),
    "Output.set_code": (
        (
            "Output().set_code(500).code",
            "Output().set_code(201)",
            "[o := Output(), o.set_code(1) is o][-1]",
            "Output().set_code('200').code",
        ),
        ("Output().set_code()",),
    ),
    "Output.set_message": (
        (
            "Output().set_message('ä').message",
            "[o := Output(), o.set_message('') is o][-1]",
            "Output().set_message(message='m')",
        ),
        ("Output().set_message()",),
    ),
    "Output.error": (
        (
            "Output().error('bad')",
            "Output().error('bad', 500)",
            "Output().error(error='bad', code=400, message='m')",
            "Output().error('ä\"').content.value_at(0)",
            "Output().add('half').error('bad')",
            "Output().add_property('content-type', 'text/plain').error('bad').properties",
            "[o := Output(), o.error('') is o][-1]",
        ),
        ("Output().error()", "Output().error(ValueError('bad'))"),
    ),
    "Output.add_property": (
        (
            "Output().add_property('A', 1).properties",
            "Output().add_property('A', 'b').add_property('a', 'c').properties",
            "Output().add_property(key='A', val=None).properties",
            "[o := Output(), o.add_property('A', 1) is o][-1]",
        ),
        ("Output().add_property('A')",),
    ),
    "Output.get_properties": (
        (
            "Output().get_properties()",
            "Output().add_property('A', 1).get_properties()",
            "[o := Output(), o.get_properties() is o.properties][-1]",
        ),
        ("Output().get_properties('A')",),
    ),
    "Output.get_property": (
        (
            "Output().add_property('A', 1).get_property('A')",
            "Output().add_property('A', 1).get_property('a')",
            "Output().get_property('A')",
        ),
        ("Output().get_property()",),
    ),
}

_BODY = {
    "Output.add": (
        (
            "Output().add('ä')",
            "Output().add(b'b', 'k')",
            "Output().add(bytearray(b'b'), key='k', batch_index=0)",
            "Output().add({'a': 1}, batch_index=3)",
            "Output().add([1, 2.5, None, True], 'k', 12)",
            "Output().add('x', 5)",
            "Output().add('x', '', 1)",
            "Output().add(None)",
            "Output().add(7).content.value_at(0)",
            "Output().add(np.arange(2))",
            "Output().add(np.str_('text'))",
            "Output().add('x', batch_index='2')",
            "type(Output().add(bytearray()).content.value_at(0)).__name__",
            "type(Output().add('x').content.value_at(0)).__name__",
            "type(Output().add(b'x').content.value_at(0)).__name__",
            "type(Output().add({}).content.value_at(0)).__name__",
            "[v := bytearray(b'1'), Output().add(v).content.value_at(0) is v][-1]",
            "[o := Output(), o.add('x') is o][-1]",
        ),
        (
            "Output().add(object())",
            "Output().add(float('nan'))",
            "Output().add(memoryview(b'x'))",
            "Output().add(float('-inf'), 'k', 1)",
            "Output().add()",
            "Output().add({1, 2})",
        ),
    ),
    "Output.add_as_json": (
        (
            f"Output().add_as_json({_NESTED})",
            "Output().add_as_json('text', 'k')",
            "Output().add_as_json([], 'k', 2)",
            "Output().add_as_json(val={'a': {'b': ()}})",
            "Output().add_as_json('a\\u2028\\n\\U0001f600')",
            "Output().add_as_json({1: 2, None: 3})",
            "Output().add_as_json(np.float64(1e300))",
            "Output().add_as_json(np.bool_(True))",
            "Output().add_as_json(date(2024, 1, 2))",
        ),
        (
            "Output().add_as_json(float('inf'))",
            "Output().add_as_json(np.array([np.nan]))",
            "Output().add_as_json(object())",
            "Output().add_as_json(b'bytes')",
            "Output().add_as_json({(1, 2): 3})",
        ),
    ),
    "Output.add_as_numpy": (
        (
            "Output().add_as_numpy([np.float32([1, 2])])",
            "Output().add_as_numpy(np.int64([[1], [2]]), 'k')",
            "Output().add_as_numpy([], batch_index=1)",
            "Output().add_as_numpy(np_list=[np.uint8(3), np.zeros((0, 2))])",
        ),
        ("Output().add_as_numpy([1])", "Output().add_as_numpy(None)", "Output().add_as_numpy((np.ones(1),))"),
    ),
    "Output.add_as_npz": (
        (
            "load(Output().add_as_npz([np.ones(2), np.int8([1])]).content.value_at(0))",
            "load(Output().add_as_npz((np.ones(2),), 'k').content.get('k'))",
            "Output().add_as_npz([np.ones(1)], 'k', 4).content.get_keys()",
            "load(Output().add_as_npz(np.ones(2)).content.value_at(0))",
            "load(Output().add_as_npz([3]).content.value_at(0))",
        ),
        ("Output().add_as_npz()", "Output().add_as_npz(None)"),
    ),
    "Output.add_stream_content": (
        (
            "[list(map(bytes_of, map(o.stream_output_formatter, o.stream_content))) "
            "for o in [Output().add_stream_content(iter(['a', 1, 'ä']))]]",
            "Output().add_stream_content(iter([]), None).stream_output_formatter",
            "Output().add_stream_content(iter([1]), output_formatter=str).stream_output_formatter(1)",
            "[o := Output(), o.add_stream_content(stream_content=iter([])) is o][-1]",
            "[s := iter([1]), Output().add_stream_content(s).stream_content is s][-1]",
        ),
        ("Output().add_stream_content()",),
    ),
    "Output.finalize": (
        (
            "Output().finalize(print, 1, 2).finalize_args",
            "[o := Output(), o.finalize(print) is o][-1]",
            "Output().finalize(len, 'a').finalize_function('abc')",
            "Output().finalize(len, 'a').finalize(str, 'b').execute_finalize()",
        ),
        ("Output().finalize()",),
    ),
    "Output.execute_finalize": (
        (
            "Output().execute_finalize()",
            "Output().finalize(len, 'abc').execute_finalize()",
            "[s := [], Output().finalize(s.append, 1).execute_finalize(), s]",
            "Output().finalize(None).execute_finalize()",
        ),
        ("Output().finalize(int, 'x').execute_finalize()", "Output().finalize(3).execute_finalize()"),
    ),
    "Output.binary_encode": (
        (
            "Output.binary_encode({})",
            "Output.binary_encode({'data': 'ä', 'last': True})",
            "Output.binary_encode({'data': None, 'n': 1.5})",
            "Output().binary_encode({'a': b'b'})",
            "Output.binary_encode({None: 'a'})",
        ),
        (
            "Output.binary_encode({1: 'a'})",
            "Output.binary_encode([('a', 'b')])",
            "Output.binary_encode(None)",
        ),
    ),
    "Output.write_utf8": (
        (
            "[m := bytearray(), Output.write_utf8(m, 'ä'), m]",
            "[m := bytearray(b'0'), Output.write_utf8(m, ''), m]",
            "[m := bytearray(), Output.write_utf8(m, None), m]",
        ),
        ("Output.write_utf8(bytearray(), 1)",),
    ),
}

CALLS = _HEAD | _BODY
