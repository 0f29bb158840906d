"""Calls of Input and PairList: name -> expressions that are right, expressions that are wrong."""

_ONE = "made([('data', b'x')])"
_BATCH = (
    "made([('batch_000.data', b'a'), ('batch_001.k', b'b'), ('batch_001.l', b'c')], "
    "**{'batch_size': '2', 'batch_001.who': 'me', 'model_dir': '/m'})"
)

_CODEC = {
    "Input.get_as_bytes": (
        (
            "made().get_as_bytes()",
            "made([('k', b'1'), ('data', b'2')]).get_as_bytes()",
            "made([('k', b'1'), ('l', b'2')]).get_as_bytes()",
            "made([('k', b'1'), ('k', b'2')]).get_as_bytes('k')",
            "made([('k', b'1')]).get_as_bytes('')",
            "made([(None, b'1')]).get_as_bytes()",
            "made().get_as_bytes('k')",
            "made([('data', bytearray(b'x'))]).get_as_bytes(key='data')",
        ),
        ("made([('k', b'1')]).get_as_bytes('z')", "made([('k', b'1')]).get_as_bytes('K')"),
    ),
    "Input.get_as_string": (
        (
            "made([('data', 'ä'.encode())]).get_as_string()",
            "made([('k', b'1')]).get_as_string('k')",
            "made([('data', b'')]).get_as_string()",
        ),
        (
            "made().get_as_string()",
            "made([('data', b'\\xff')]).get_as_string()",
            "made([('data', b'1')]).get_as_string('z')",
        ),
    ),
    "Input.get_as_json": (
        (
            "made([('data', b'{\"a\": [1, 2.5, null, true]}')]).get_as_json()",
            "made([('k', '\"ä\"'.encode())]).get_as_json('k')",
            "made([('data', b'NaN')]).get_as_json() != 0",
        ),
        (
            "made([('data', b'{')]).get_as_json()",
            "made([('data', b'')]).get_as_json()",
            "made().get_as_json()",
            "made([('data', b'\\xff\\xfe1\\x00')]).get_as_json()",
        ),
    ),
    "Input.get_as_image": (
        (
            "made([('data', png())]).get_as_image()",
            "made([('k', png('RGB', (5, 4)))]).get_as_image('k')",
            "made([('k', b'no'), ('data', png())]).get_as_image().getpixel((0, 0))",
        ),
        (
            "made([('data', b'')]).get_as_image()",
            "made([('data', png())]).get_as_image('z')",
        ),
    ),
    "Input.get_as_numpy": (
        (
            "made([('data', ndlist(np.float32([[1, 2]])))]).get_as_numpy()",
            "made([('k', ndlist(np.int64([1]), np.uint8([[2], [3]])))]).get_as_numpy('k')",
            "made([('data', npz(np.ones(2)))]).get_as_numpy()",
            "made([('data', ndlist())]).get_as_numpy()",
        ),
        ("made().get_as_numpy()", "made([('data', b'no list')]).get_as_numpy()", f"{_ONE}.get_as_numpy('z')"),
    ),
    "Input.get_as_npz": (
        (
            "made([('data', npz(np.ones(2), np.int8([[1]])))]).get_as_npz()",
            "made([('k', npz(a=np.zeros((0, 2)), b=np.ones(1)))]).get_as_npz('k')",
            "made([('data', npz())]).get_as_npz()",
        ),
        (
            "made([('data', npz(np.array([{}], object)))]).get_as_npz()",
            "made([('data', npy(np.ones(1)))]).get_as_npz()",
            "made([('data', b'')]).get_as_npz()",
            "made([('data', b'PK')]).get_as_npz()",
        ),
    ),
    "Input.get_as_csv": (
        (
            "made([('data', b'a,b\\n1,2\\n3,4\\n')]).get_as_csv()",
            "made([('k', b'a\\n\"x,y\"\\n')]).get_as_csv(\"k\")",
            "made([('data', b'a,b\\n')]).get_as_csv()",
            "made([('data', b'a,b\\n1\\n1,2,3\\n')]).get_as_csv()",
            "made([('data', b'')]).get_as_csv()",
        ),
        ("made().get_as_csv()", "made([('data', b'\\xff')]).get_as_csv()"),
    ),
    "Input.get_data": (
        (
            "made([('data', ndlist(np.ones(2)))], content_type='tensor/ndlist').get_data()",
            "made([('data', npz(np.ones(2)))], content_type='tensor/npz').get_data()",
            "made([('data', b'[1]')], content_type='application/json; charset=utf-8').get_data()",
            "made([('data', b'{}')], content_type='application/jsonlines').get_data()",
            "made([('data', b'hi')], **{'Content-Type': 'text/plain'}).get_data()",
            "made([('data', png())], content_type='image/png').get_data()",
            "made([('k', b'x')], content_type='audio/wav').get_data('k')",
            f"{_ONE}.get_data()",
            "made().get_data()",
            "made([('data', b'x')], content_type='TEXT/PLAIN').get_data()",
            "made([('data', b'x')], content_type='tensor/ndlist; a=b').get_data()",
        ),
        (
            "made([('data', b'x')], content_type='application/json').get_data()",
            "made(content_type='text/plain').get_data()",
            f"{_ONE}.get_data('z')",
            "made([('data', b'x')], content_type='tensor/ndlist').get_data()",
        ),
    ),
}

_BASICS = {
    "Input": (
        ("Input()", "Input().properties", "Input().content", "Input().function_name"),
        ("Input({})",),
    ),
    "Input.__str__": (
        (
            "str(Input())",
            "str(made([('data', b'hi'), ('k', b'x')], content_type='text/plain', a='b'))",
            "str(made([('data', b'{\"a\": 1}')], content_type='application/json'))",
            "str(made([(None, b'hi'), ('k', b'x')], content_type='text/plain'))",
        ),
        ("str(made([('data', b'{')], content_type='application/json'))",),
    ),
    "Input.is_empty": (
        (
            "made().is_empty()",
            f"{_ONE}.is_empty()",
            "made(a='b').is_empty()",
            "made([('k', b'')]).is_empty()",
        ),
        ("made().is_empty(1)",),
    ),
    "Input.get_properties": (
        (
            "made().get_properties()",
            "made(a='b', content_type='c').get_properties()",
            "made(a='b').get_properties() == {'a': 'b'}",
            "made(content_type='c').get_properties()['CONTENT-TYPE']",
        ),
        ("made(a='b').get_properties()['c']",),
    ),
    "Input.get_property": (
        (
            "made(content_type='a/b').get_property('Content-Type')",
            "made(**{'X-Y': '1'}).get_property('x-y')",
            "made().get_property('x')",
            "made(**{'a': '1', 'A': '2'}).get_property('A')",
        ),
        ("made(a='1').get_property(None)", "made().get_property()"),
    ),
    "Input.get_content": (
        (
            "made().get_content()",
            f"{_ONE}.get_content()",
            "made([('a', b'1'), ('a', b'2')]).get_content().size()",
            f"{_ONE}.get_content() is {_ONE}.get_content()",
        ),
        (f"{_ONE}.get_content('data')",),
    ),
    "Input.contains_key": (
        (
            f"{_ONE}.contains_key('data')",
            f"{_ONE}.contains_key('Data')",
            "made().contains_key('data')",
            "made([('k', b'')]).contains_key('k')",
            "[i := made(), i.content.add(pair=('k', None)), i.contains_key('k')][-1]",
        ),
        ("made().contains_key()",),
    ),
    "Input.get_function_name": (
        (
            "made().get_function_name()",
            "[i := made(), setattr(i, 'function_name', 'handle'), i.get_function_name()][-1]",
            "made(handler='h').get_function_name()",
            f"{_BATCH}.get_batches()[0].get_function_name()",
        ),
        ("made().get_function_name('a')",),
    ),
    "Input.is_batch": (
        (
            "made().is_batch()",
            f"{_BATCH}.is_batch()",
            "made(batch_size='1').is_batch()",
            "made(**{'Batch_Size': '2'}).is_batch()",
        ),
        ("made().is_batch(2)",),
    ),
    "Input.get_batch_size": (
        (
            "made().get_batch_size()",
            f"{_BATCH}.get_batch_size()",
            "made(batch_size=3).get_batch_size()",
            "made(batch_size='0').get_batch_size()",
        ),
        ("made(batch_size='two').get_batch_size()", "made(batch_size='').get_batch_size()"),
    ),
    "Input.get_batches": (
        (
            f"{_BATCH}.get_batches()",
            "len(made([('k', b'1')]).get_batches())",
            "[i := made([('k', b'1')]), i.get_batches()[0] is i][-1]",
            "made([('batch_000_data', b'a')], batch_size='1').get_batches()",
            "[[item.is_batch() for item in b.get_batches()] for b in [" + _BATCH + "]]",
            "made(batch_size='2').get_batches()",
        ),
        (
            "made([('odd', b'd')], batch_size='1').get_batches()",
            "made([('batch_001.data', b'd')], batch_size='1').get_batches()",
            "made([('batch_000.data', b'd')], **{'batch_size': '1', 'batch_x': 'y'}).get_batches()",
            "made([(None, b'd')], batch_size='1').get_batches()",
        ),
    ),
}

_TWO = "pairs(('a', 1), ('b', 2), ('a', 3))"

_PAIRS = {
    "PairList": (
        (
            "PairList()",
            "PairList(['a'], [1])",
            "PairList(['a'])",
            "PairList(keys=[], values=[])",
            "PairList(pair_list=[('a', 1), ('b', 2)])",
            "PairList(pair_map={'a': 1})",
        ),
        ("PairList(['a'], [1, 2])", "PairList(pairs=[])"),
    ),
    "PairList.add": (
        (
            "[p := PairList(), p.add('a', 1), p.add(value=2), p.add(key='c', value=b''), p][-1]",
            "[p := pairs(('a', 1)), p.add('b', 2, 0), p.add('c', 3, -1), p.add('d', 4, 9), p][-1]",
            "[p := PairList(), p.add(pair=('a', 1)), p.add(pair=['b', None]), p][-1]",
            "[p := PairList(), p.add('a'), p.add('a', None, 0), p.add(), p][-1]",
            "[p := pairs(('a', 1)), p.add(pair=('b', 2), index=0), p][-1]",
            "[p := PairList(), p.add('a', 1, pair=('b', 2)), p.add('k', 0, pair=()), p][-1]",
            "PairList().add('a', 1)",
        ),
        ("PairList().add(pair=('a',))", "PairList().add('a', 1, index='0')"),
    ),
    "PairList.add_all": (
        (
            "[p := pairs(('a', 1)), p.add_all({'b': 2}), p][-1]",
            "[p := pairs(('a', 1)), p.add_all(pairs(('b', 2))), p][-1]",
            "[p := pairs(('a', 1)), p.add_all(None), p.add_all({}), p][-1]",
            "pairs().add_all({'b': 2})",
        ),
        ("pairs().add_all([('b', 2)])", "pairs().add_all()"),
    ),
    "PairList.size": (("pairs().size()", f"{_TWO}.size()", "pairs((None, 1)).size()"), ("pairs().size(1)",)),
    "PairList.is_empty": (
        ("pairs().is_empty()", f"{_TWO}.is_empty()", "pairs((None, b'')).is_empty()"),
        ("pairs().is_empty(1)",),
    ),
    "PairList.get": (
        (
            f"{_TWO}.get('a')",
            f"{_TWO}.get('z')",
            "pairs((None, 1)).get(None)",
            "pairs().get('a')",
            f"{_TWO}.get('A')",
        ),
        (f"{_TWO}.get()",),
    ),
    "PairList.key_at": (
        (f"{_TWO}.key_at(1)", f"{_TWO}.key_at(-1)", "pairs((None, 1)).key_at(0)"),
        (f"{_TWO}.key_at(3)", f"{_TWO}.key_at('a')"),
    ),
    "PairList.value_at": (
        (f"{_TWO}.value_at(1)", f"{_TWO}.value_at(-1)", "pairs((None, 1)).value_at(0)"),
        (f"{_TWO}.value_at(3)", f"{_TWO}.value_at('a')"),
    ),
    "PairList.get_keys": (
        (f"{_TWO}.get_keys()", "pairs().get_keys()", "[p := pairs(), p.get_keys() is p.get_keys()][-1]"),
        (f"{_TWO}.get_keys(1)",),
    ),
    "PairList.get_values": (
        (
            f"{_TWO}.get_values()",
            "pairs().get_values()",
            "[p := pairs(), p.get_values() is p.get_values()][-1]",
        ),
        (f"{_TWO}.get_values(1)",),
    ),
}

CALLS = _BASICS | _CODEC | _PAIRS
