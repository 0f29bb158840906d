"""Calls of `test_model`, `service_loader` and of sessions: name -> expressions that are right, those that are wrong.

Each runs in an empty folder of its own, `folder` in the expressions; `write` and `write_model` put files there.
"""

_WRITE = "write_model()"
_TEXT = "create_text_request('hi')"


def _handler(call: str, files: str = _WRITE) -> str:
    return f"[{files}, h := TestHandler('model.py', folder), {call}][-1]"


_REQUESTS = {
    "test_model.create_request": (
        (
            "create_request(['text'], None)",
            "create_request(['{\"a\": 1}'], [])",
            "[write(**{'a.json': '[1]'}), create_request(['a.json'], ['k=v', 'b=c'])][-1]",
            "[write(**{'a.txt': 'hi', 'b.txt': 'ho'}), create_request(['a=a.txt', 'data=b.txt'], None)][-1]",
            "[write(**{'a.npz': 'x'}), create_request(['k=a.npz'], None)][-1]",
            "[write(**{'a.ndlist': 'x'}), create_request(['a.ndlist'], None)][-1]",
            "[write(**{'a.png': 'x'}), create_request(['a.png'], None).get_property('content-type')][-1]",
            "[write(**{'a.jpeg': 'x'}), create_request(['a.jpeg'], None).get_property('content-type')][-1]",
            "[write(**{'a.bin': 'x'}), create_request(['a.bin'], None)][-1]",
            "create_request(['k=a=b'], None)",
        ),
        (
            "create_request(['x'], ['novalue'])",
            "create_request(['x'], ['a=b=c'])",
            "create_request([], None)",
            "create_request(['x'])",
        ),
    ),
    "test_model.create_json_request": (
        (
            "create_json_request({'a': 'ä'})",
            "create_json_request([1], 'k')",
            "create_json_request(json_data=None)",
            "create_json_request(np.arange(2), key='k')",
        ),
        ("create_json_request(object())", "create_json_request(float('nan'))"),
    ),
    "test_model.create_text_request": (
        (
            "create_text_request('ä')",
            "create_text_request('', 'k')",
            "create_text_request(text='x', key=None)",
        ),
        ("create_text_request(b'x')",),
    ),
    "test_model.create_numpy_request": (
        (
            "create_numpy_request([np.float32([1])])",
            "create_numpy_request(np.int64([1]), 'k')",
            "create_numpy_request(list=[], key=None)",
        ),
        ("create_numpy_request([1])",),
    ),
    "test_model.create_npz_request": (
        (
            "create_npz_request([np.ones(1), np.ones(2)]).get_as_npz()",
            "create_npz_request([np.ones(1)], 'k').content.get_keys()",
            "create_npz_request([]).get_properties()",
        ),
        ("create_npz_request(None)",),
    ),
    "test_model.create_concurrent_batch_request": (
        (
            "create_concurrent_batch_request([{'inputs': 'a'}, {'inputs': 'b'}])",
            "create_concurrent_batch_request([1], [{'who': 'me'}])",
            "create_concurrent_batch_request([1, 2], None, {'handler': 'h', 'x': 'y'})",
            "create_concurrent_batch_request([1], [{'a': 'b'}]).get_batches()",
            "create_concurrent_batch_request([])",
        ),
        ("create_concurrent_batch_request([object()])", "create_concurrent_batch_request([1], ['a'])"),
    ),
    "test_model.extract_output_as_input": (
        (
            "extract_output_as_input(Output().add('x', 'k').add_property('A', 'b'))",
            "extract_output_as_input(Output())",
            "extract_output_as_input(Output().add_property('content-type', 'text/plain').add('x')).get_data()",
        ),
        ("extract_output_as_input(None)",),
    ),
    "test_model.extract_output_as_bytes": (
        (
            "extract_output_as_bytes(Output().add('x'))",
            "extract_output_as_bytes(Output().add('x').add('y', 'k'), 'k')",
            "extract_output_as_bytes(Output())",
        ),
        ("extract_output_as_bytes(Output().add('x'), 'z')",),
    ),
    "test_model.extract_output_as_string": (
        (
            "extract_output_as_string(Output().add('ä'))",
            "extract_output_as_string(Output().add([1], 'k'), key='k')",
            "extract_output_as_string(Output().add('x').add('y', 'data'))",
        ),
        ("extract_output_as_string(Output())", "extract_output_as_string(Output().add(b'\\xff'))"),
    ),
    "test_model.extract_output_as_numpy": (
        (
            "extract_output_as_numpy(Output().add_as_numpy([np.ones(2)]))",
            "extract_output_as_numpy(Output().add_as_numpy(np.int8([1]), 'k'), 'k')",
            "extract_output_as_numpy(Output().add_as_npz([np.ones(2)]))",
        ),
        ("extract_output_as_numpy(Output().add('no list'))",),
    ),
    "test_model.extract_output_as_npz": (
        (
            "extract_output_as_npz(Output().add_as_npz([np.ones(2)]))",
            "extract_output_as_npz(Output().add_as_npz([np.ones(2)], 'k'), key='k')",
            "extract_output_as_npz(Output().add_as_npz([]))",
        ),
        ("extract_output_as_npz(Output().add('no archive'))", "extract_output_as_npz(Output())"),
    ),
}

_HANDLERS = {
    "test_model.load_properties": (
        (
            "load_properties(None)",
            "load_properties(folder)",
            "[write(**{'serving.properties': '# c\\n\\noption.a=b\\nengine = Python\\nx=y=z\\n'}), "
            "load_properties(folder)][-1]",
            "[write(**{'serving.properties': 'option.url=s3://a/b?c=d\\nempty=\\n'}), load_properties('.')][-1]",
            "[write(**{'serving.properties': 'a: b\\n'}), load_properties('.')][-1]",
        ),
        (
            "[write(**{'serving.properties': 'no value\\n'}), load_properties('.')][-1]",
            "load_properties(3.5)",
        ),
    ),
    "test_model.update_properties_with_env_vars": (
        (
            "update_properties_with_env_vars({'a': 'b'})",
            "with_environment({'HF_MODEL_ID': 'm', 'OPTION_TGI_COMPAT': 'true'}, update_properties_with_env_vars, {})",
            "with_environment({'OPTION_ENTRYPOINT': 'e.py', 'OPTION_A': '1'}, update_properties_with_env_vars, "
            "{'a': '2'})",
            "[d := {}, update_properties_with_env_vars(d) is d][-1]",
        ),
        ("with_environment({'OPTION_A': '1'}, update_properties_with_env_vars, None)",),
    ),
    "test_model.TestHandler": (
        (
            _handler("h.serving_properties"),
            "[write(**{'serving.properties': 'option.a=b\\n'}), "
            + _handler("h.serving_properties", _WRITE)
            + "][-1]",
            _handler("same_folder(os.getcwd(), folder)"),
            _handler("folder in sys.path"),
            _handler("type(h.service).__name__"),
            "TestHandler(module(handle=str, _service=module(initialized=True))).service.module._service.initialized",
            "TestHandler(module(handle=str)).service.model_dir",
        ),
        (
            "TestHandler('absent.py', folder)",
            "TestHandler('model.py', None)",
            "TestHandler('model.py', 'absent_folder')",
            "TestHandler()",
        ),
    ),
    "test_model.TestHandler.inference": (
        (
            _handler(f"h.inference({_TEXT})"),
            _handler("h.inference(named(create_text_request('x'), 'nothing'))"),
            "[write(**{'serving.properties': 'option.a=b\\n'}), "
            + _handler(f"h.inference({_TEXT})")
            + "][-1]",
            _handler(
                "same_folder([i := create_text_request('x'), h.inference(i)][0].properties['model_dir'], folder)"
            ),
        ),
        (
            _handler("h.inference(named(create_text_request('x'), 'fails'))"),
            _handler("h.inference(named(create_text_request('x'), 'absent'))"),
            _handler("h.inference(None)"),
        ),
    ),
    "test_model.TestHandler.inference_batch": (
        (
            "TestHandler(module(handle=lambda i: i, _service=module())).inference_batch([1, 2])",
            "TestHandler(module(handle=lambda i: i, _service=module())).inference_batch([1], [{'a': 'b'}], {'c': 'd'})",
            "TestHandler(module(h=lambda i: i.get_batch_size(), _service=module()))"
            ".inference_batch([1, 2], None, {'handler': 'h'})",
        ),
        (
            "TestHandler(module(handle=lambda i: i, _service=module())).inference_batch(None)",
            "TestHandler(module(handle=lambda i: i, _service=module())).inference_batch([object()])",
        ),
    ),
    "test_model.run": (
        (
            f"[{_WRITE}, ran('--model-dir', '.', '--input', 'hi')][-1]",
            f"[{_WRITE}, write(**{{'in.txt': 'ho'}}), ran('--model-dir', folder, '--input', 'in.txt', "
            "'--entry-point', 'model.py', '--parameters', 'a=b', 'c=d')][-1]",
            f"[{_WRITE}, ran('--model-dir', '.', '--handler', 'nothing', '--input', 'hi')][-1]",
            f"[{_WRITE}, ran('--model-dir', folder, '--input', 'k=a', 'data=b')][-1]",
            f"[{_WRITE}, write(**{{'input.txt': 'ho'}}), ran('--model-dir', folder)][-1]",
        ),
        (
            f"[{_WRITE}, ran('--model-dir', '.', '--handler', 'fails', '--input', 'hi', '--parameters', 'a=1')][-1]",
            f"[{_WRITE}, ran('--model-dir', '.', '--input', 'hi', '--parameters', 'a')][-1]",
            "ran('--model-dir', folder, '--input', 'hi')",
            "ran('--nonsense')",
        ),
    ),
}

_LOADER = {
    "service_loader.ModelService": (
        (
            "ModelService(math, '/m').model_dir",
            "ModelService(math, '/m').module.__name__",
            "ModelService(module=math, model_dir=None).model_dir",
        ),
        ("ModelService(math)",),
    ),
    "service_loader.ModelService.invoke_handler": (
        (
            "ModelService(module(f=lambda i: i), '/m').invoke_handler('f', made([('k', b'x')]))",
            "ModelService(module(f=lambda i: None), '/m').invoke_handler(function_name='f', inputs=made())",
            "ModelService(module(f=lambda i: 3), '/m').invoke_handler('f', made(model_dir='/other'))",
        ),
        (
            "ModelService(math, '/m').invoke_handler('absent', made())",
            "ModelService(module(f=lambda i: 1 / 0), '/m').invoke_handler('f', made())",
        ),
    ),
    "service_loader.ModelService.invoke_handler_async": (
        (
            "wait(ModelService(module(f=later(3)), '/m').invoke_handler_async('f', made()))",
            "wait(ModelService(module(f=later(None)), '/m').invoke_handler_async('f', made()))",
            "[i := made(), wait(ModelService(module(f=later(1)), 'm').invoke_handler_async('f', i)), i.properties][-1]",
        ),
        (
            "wait(ModelService(math, '/m').invoke_handler_async('absent', made()))",
            "wait(ModelService(module(f=lambda i: 3), '/m').invoke_handler_async('f', made()))",
        ),
    ),
    "service_loader.load_model_service": (
        (
            f"[{_WRITE}, load_model_service(folder, 'model.py', '-1').module.value][-1]",
            f"[{_WRITE}, load_model_service('/m', os.path.join(folder, 'model.py'), -1).model_dir][-1]",
            f"[{_WRITE}, load_model_service(folder, 'model.py', -1, 'a-b.c').module.__name__][-1]",
            f"[{_WRITE}, load_model_service(folder, 'model.py', -1).module.__name__[:6]][-1]",
            "load_model_service(folder, 'json.decoder', -1).module.__name__",
            f"[{_WRITE}, sys.modules['ns_x'] is load_model_service(folder, 'model.py', -1, namespace='x').module"
            " if load_model_service(folder, 'model.py', -1, namespace='x') else 0][-1]",
        ),
        (
            "load_model_service(folder, 'absent.py', -1)",
            "load_model_service(folder, os.path.join(folder, 'absent.py'), -1)",
            "load_model_service(folder, 'absent_module', -1)",
            "[write(**{'model.py': '1 / 0'}), load_model_service(folder, 'model.py', -1)][-1]",
            "load_model_service(folder, 'model.py')",
        ),
    ),
    "service_loader.has_function_in_module": (
        (
            "has_function_in_module(math, 'sqrt')",
            "has_function_in_module(math, 'pi')",
            "has_function_in_module(math, 'absent')",
        ),
        ("has_function_in_module(math, 3)",),
    ),
    "service_loader.is_valid_dir": (
        (
            "is_valid_dir(os.path.join(folder, 'x'))",
            "is_valid_dir(os.path.join(folder, 'y', 'x'))",
            "is_valid_dir('x')",
        ),
        ("is_valid_dir(3.5)",),
    ),
    "service_loader.find_decorated_function": (
        (
            "find_decorated_function(module(a=marked('b'), b=marked('c')), 'b').__name__",
            "find_decorated_function(module(z=marked('b'), a=marked('b', 'first')), 'b').__name__",
            "find_decorated_function(math, 'is_x')",
            "find_decorated_function(module(a=3), 'real')",
        ),
        ("find_decorated_function(math, 3)",),
    ),
    "service_loader.get_annotated_function": (
        (
            f"[{_WRITE}, get_annotated_function(folder, 'is_marked').__name__][-1]",
            f"[{_WRITE}, get_annotated_function(folder, 'is_marked', 'n').__module__][-1]",
            f"[{_WRITE}, get_annotated_function(folder, 'is_other', namespace=None)][-1]",
            "get_annotated_function(folder, 'is_marked')",
            "[write(**{'model.py': 'raise ValueError(1)'}), get_annotated_function(folder, 'x')][-1]",
        ),
        ("[write(**{'model.py': '1 / 0'}), get_annotated_function(folder, 'x')][-1]",),
    ),
}

_NEW = "[m := manager(), s := m.create_session(), "
_ABSENT = "'12345678-1234-1234-1234-123456789012'"

_SESSIONS = {
    "Session": (
        (
            "Session('i', folder).expiration_ts",
            "Session('i', folder, 5.0).expiration_ts",
            "Session('i', folder).files_path.replace(folder, 'DIR')",
            "Session(session_id='i', session_root=folder, expiration_ts=None).session_id",
            _NEW + "Session(s.session_id, m.sessions_path).expiration_ts == s.expiration_ts][-1]",
        ),
        ("Session('i')",),
    ),
    "Session.put": (
        (
            _NEW + "s.put('k', {'a': [1]}), s.get('k')][-1]",
            _NEW + "s.put('a/b', 1), s.get('a-b')][-1]",
            _NEW + "s.put('k', 1), s.put('k', 2), s.get('k')][-1]",
            _NEW + "s.put('k', np.ones(2)), s.get('k')][-1]",
            _NEW + "s.put('k', 1), oct(os.stat(os.path.join(s.files_path, 'k')).st_mode)][-1]",
        ),
        (
            _NEW + "s.put('k', lambda: 0)][-1]",
            "Session('absent', folder).put('k', 1)",
            _NEW + "s.put('..', 1)][-1]",
        ),
    ),
    "Session.get": (
        (
            _NEW + "s.get('absent')][-1]",
            _NEW + "s.get('absent', 7)][-1]",
            _NEW + "s.get('absent', d=8)][-1]",
            _NEW + "s.put('k', None), s.get('k', 9)][-1]",
            "Session('absent', folder).get('k')",
            _NEW + "s.get('..', 1)][-1]",
        ),
        (_NEW + "s.get()][-1]", _NEW + "s.get(3)][-1]"),
    ),
    "Session.get_as_numpy": (
        (
            _NEW + "s.get_as_numpy('k', (2, 2), create=True)][-1]",
            _NEW + "s.get_as_numpy('k', (3,), np.int64, True)][-1]",
            _NEW + "put(s.get_as_numpy('k', (2,), create=True), 5), s.get_as_numpy('k', (2,))][-1]",
            _NEW + "put(s.get_as_numpy('k', 2, create=True), 5), s.get_as_numpy('k', 2, create=True)][-1]",
            _NEW + "type(s.get_as_numpy('k', 1, create=True)).__name__][-1]",
        ),
        (
            _NEW + "s.get_as_numpy('absent', (2,))][-1]",
            _NEW + "s.get_as_numpy('k')][-1]",
        ),
    ),
    "Session.remove": (
        (
            _NEW + "s.remove()][-1]",
            _NEW + "s.put('k', 1), s.remove(), os.path.exists(s.files_path)][-1]",
            _NEW + "s.remove(), os.listdir(m.sessions_path)][-1]",
        ),
        (_NEW + "s.remove(), s.remove()][-1]", "Session('absent', folder).remove()"),
    ),
    "SessionManager": (
        (
            "manager().expiration",
            "manager(sessions_expiration='5').expiration",
            "manager().sessions_path.replace(folder, 'DIR')",
            "[manager(), os.path.isdir(os.path.join(folder, 'sessions'))][-1]",
            "oct(os.stat(manager().sessions_path).st_mode)",
            "[os.mkdir('open'), os.chmod('open', 0o777), type(SessionManager({'sessions_path': 'open'})).__name__][-1]",
            "SessionManager({'sessions_path': os.path.join(folder, 'a', 'b')}).sessions_path.replace(folder, 'DIR')",
        ),
        ("manager(sessions_expiration='soon')", "SessionManager()", "SessionManager(None)"),
    ),
    "SessionManager.create_session": (
        (
            "type(manager().create_session()).__name__",
            "len(manager().create_session().session_id)",
            _NEW + "round(s.expiration_ts - time.time(), -1)][-1]",
            "[m := manager(sessions_expiration='-1'), m.create_session(), m.create_session(), "
            "len(os.listdir(m.sessions_path))][-1]",
            _NEW + "m.create_session().session_id == s.session_id][-1]",
            _NEW + "os.listdir(s.files_path)][-1]",
            _NEW + "oct(os.stat(s.files_path).st_mode)][-1]",
        ),
        ("manager().create_session('id')",),
    ),
    "SessionManager.get_session": (
        (
            _NEW + "m.get_session(s.session_id).session_id == s.session_id][-1]",
            "manager().get_session('')",
            "manager().get_session(None)",
            "manager().get_session('NEW_SESSION')",
            "[m := manager(sessions_expiration='-1'), m.get_session(m.create_session().session_id)][-1]",
            _NEW + "s.put('k', 1), manager().get_session(s.session_id).get('k')][-1]",
            "[m := manager(), o := manager(), s := m.create_session(), s.put('k', 1), "
            "o.get_session(s.session_id).get('k')][-1]",
        ),
        (
            f"manager().get_session({_ABSENT})",
            "manager().get_session('..')",
            "manager().get_session('no id')",
        ),
    ),
    "SessionManager.close_session": (
        (
            _NEW + "m.close_session(s.session_id)][-1]",
            _NEW + "m.close_session(s.session_id), os.listdir(m.sessions_path)][-1]",
            _NEW + "manager().close_session(s.session_id), os.path.exists(s.files_path)][-1]",
        ),
        (
            "manager().close_session('')",
            "manager().close_session(None)",
            f"manager().close_session({_ABSENT})",
            _NEW + "m.close_session(s.session_id), m.close_session(s.session_id)][-1]",
        ),
    ),
    "session_utils.create_session": (
        (
            "wait(create_session((manager(), made())))",
            "sorted(wait(create_session((manager(), None))))",
            "[m := manager(), wait(create_session((m, made()))), len(os.listdir(m.sessions_path))][-1]",
        ),
        ("wait(create_session((None, made())))", "wait(create_session(None))"),
    ),
    "session_utils.close_session": (
        (
            _NEW + "wait(close_session((m, made(**{HEADER: s.session_id}))))][-1]",
            _NEW
            + "wait(close_session((m, made(**{HEADER: s.session_id})))), os.listdir(m.sessions_path)][-1]",
            _NEW
            + "wait(close_session((m, made(**{HEADER.lower(): s.session_id}))))['data']['result'][-6:]][-1]",
        ),
        (
            f"wait(close_session((manager(), made(**{{HEADER: {_ABSENT}}}))))",
            "wait(close_session((manager(), made())))",
            "wait(close_session((None, made())))",
            "wait(close_session(None))",
        ),
    ),
    "session_utils.get_session": (
        (
            _NEW + "session_of(m, made(**{HEADER: s.session_id})).session_id == s.session_id][-1]",
            "session_of(manager(), made())",
            "session_of(None, made())",
            "session_of(manager(), made(**{HEADER: 'NEW_SESSION'}))",
        ),
        (
            "session_of(None, made(**{HEADER: 'x'}))",
            f"session_of(manager(), made(**{{HEADER: {_ABSENT}}}))",
        ),
    ),
    "session_utils.session_non_stream_output_formatter": (
        (
            "session_formatter({'data': {'result': 'ä'}, 'properties': {'A': 'b'}})",
            "session_formatter({'data': 'text'})",
            "session_formatter({'error': 'bad', 'code': 424})",
            "session_formatter({'data': {}, 'properties': None}, other=3)",
        ),
        ("session_formatter({})", "session_formatter({'error': 'bad'})"),
    ),
}

CALLS = _REQUESTS | _HANDLERS | _LOADER | _SESSIONS
