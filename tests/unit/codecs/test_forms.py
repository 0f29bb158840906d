"""Forms: what clients write, what is no form, and bodies made to hurt."""

from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.codecs.forms import MAX_PARTS, MAX_URL_ENCODED_BYTES, called_form, parts
from trivium.types.errors import Code, ServeError
from trivium.types.payload import RawPart

TYPE = "multipart/form-data; boundary=X"
FORM = "application/x-www-form-urlencoded"


def part(disposition, data=b"v", *more):
    lines = [f"Content-Disposition: {disposition}", *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def body(*fields, boundary=b"X"):
    return b"".join(b"--%s\r\n%s\r\n" % (boundary, field) for field in fields) + b"--%s--\r\n" % boundary


def read(data, content_type=TYPE):
    return [
        (found.name, bytes(found.data), found.filename, found.content_type)
        for found in parts(content_type, data)
    ]


def refusal(data, content_type=TYPE):
    with pytest.raises(ServeError) as caught:
        parts(content_type, data)
    return caught.value


@pytest.mark.parametrize(
    ("kind", "data", "is_json"),
    [
        (FORM, b'{"a": 1}', True),
        (FORM.title() + "; charset=utf-8", b" \r\n[1]\n", True),
        (FORM, b"{a=1", False),
        (FORM, b"[a]=1", False),
        (FORM, b"a={}", False),
        (FORM, b"", False),
        (FORM, b"{", False),
        (FORM, b" " * 100 + b"{}", False),
        (TYPE, b'{"a": 1}', False),
        ("", b'{"a": 1}', False),
    ],
)
def test_json_that_is_called_a_form(kind, data, is_json):
    assert called_form(kind, data) == (RawPart(data, "application/json") if is_json else None)


def outcome(data, content_type):
    """The number of parts, or the code of the refusal; anything else that is raised fails the test."""
    try:
        found = parts(content_type, data)
    except ServeError as error:
        return error.code
    return sum(isinstance(one, RawPart) for one in found)


def test_fields_and_files_in_their_order():
    data = body(
        part('form-data; name="a"', b"1"),
        part('form-data; name="b"; filename="k.png"', b"\r\n\x00\r\n", "Content-Type: image/png"),
        part("form-data; name=a", b"2"),
    )
    assert read(data) == [
        ("a", b"1", "", ""),
        ("b", b"\r\n\x00\r\n", "k.png", "image/png"),
        ("a", b"2", "", ""),
    ]


def test_parts_view_the_body():
    data = bytearray(body(part('form-data; name="a"', b"old")))
    (found,) = parts(TYPE, memoryview(data))
    data[:] = data.replace(b"old", b"new")
    assert bytes(found.data) == b"new"


@pytest.mark.parametrize(
    ("disposition", "name", "filename"),
    [
        ('form-data; name="a;b=\\"c\\\\"', 'a;b="c\\', ""),
        ('FORM-DATA ; Name = "a" ; FileName=plain', "a", "plain"),
        ('form-data; name="ü"; filename="C:\\dir\\k.png"', "ü", "C:\\dir\\k.png"),
        ('form-data; name="a"; filename="e"; filename*=UTF-8\'en\'%e2%82%ac', "a", "€"),
        ("form-data; name=\"a\"; filename*=iso-8859-1''%e4", "a", "ä"),
        ('form-data; name="a"; filename="e"; filename*=utf-7\'\'x', "a", "e"),
        ('form-data; name="a"; name="b"', "a", ""),
        ('form-data; name=""', "", ""),
    ],
)
def test_names(disposition, name, filename):
    assert read(body(part(disposition))) == [(name, b"v", filename, "")]


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        ('multipart/form-data; boundary="a b=c"', b"a b=c"),
        ("Multipart/Form-Data;charset=utf-8;BOUNDARY=(.+)*", b"(.+)*"),
        ("multipart/form-data; boundary=" + "-" * 70, b"-" * 70),
    ],
)
def test_boundaries(content_type, boundary):
    data = body(part("form-data; name=a", b"--\r\n--" + boundary + b"y"), boundary=boundary)
    assert read(data, content_type) == [("a", b"--\r\n--" + boundary + b"y", "", "")]


def test_the_framing_may_be_generous():
    field = part("form-data;\r\n name=a", b"", "Content-Transfer-Encoding: binary", "X-Other: 1")
    data = b"preamble\r\n--X \t\r\n" + field + b"--X--epilogue"
    # An empty part may share its line break with the delimiter.
    assert read(data) == read(data.replace(b"--X--", b"\r\n--X--")) == [("a", b"", "", "")]


def test_no_parts():
    assert read(b"--X--\r\n") == []


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "its 0 bytes have no line that begins with --X"),
        (b"{}", "its 2 bytes have no line"),
        (b"--X\r\n", "the header of part 1 does not end"),
        (b"--X\r\n\r\nv\r\n--X--", "part 1 has the Content-Disposition ''"),
        (b"--X\r\nno header\r\n\r\nv\r\n--X--", "the header line 'no header', which has no colon"),
        (body(part("attachment; name=a")), "'attachment; name=a', expected form-data with a name"),
        (body(part('form-data; name="a')), "expected form-data with a name"),
        (body(part("form-data")), "expected form-data with a name"),
        (
            body(part("form-data; name=a", b"v", "Content-Transfer-Encoding: base64")),
            "'base64', which forms do",
        ),
        (body(part("form-data; name=a"))[:-7], "part 1 does not end: no delimiter --X"),
        (body(part("form-data; name=a", b"v", "X: " + "y" * 20000)), "does not end within 16384 bytes"),
    ],
)
def test_what_is_no_multipart_body_is_told(data, found):
    error = refusal(data)
    assert error.code is Code.INVALID
    assert found in error.message
    assert "curl -F" in error.message


@pytest.mark.parametrize("boundary", ["boundary=", 'boundary=""', "boundary=" + "x" * 71, 'boundary="\\"\n"'])
def test_an_impossible_boundary(boundary):
    assert "names the boundary" in refusal(b"--\r\n", f"multipart/form-data; {boundary}").message


def test_without_a_boundary_the_body_is_one_part():
    assert [
        (part.name, bytes(part.data), part.content_type) for part in parts("multipart/form-data", b"x")
    ] == [("", b"x", "multipart/form-data")]


def test_the_number_of_parts_is_bounded():
    field = part("form-data; name=a")
    assert len(parts(TYPE, body(*[field] * MAX_PARTS))) == MAX_PARTS
    assert refusal(body(*[field] * (MAX_PARTS + 1))).code is Code.TOO_LARGE
    assert len(parts(FORM, b"&".join([b"a=1"] * MAX_PARTS))) == MAX_PARTS
    assert refusal(b"&" * MAX_PARTS, FORM).code is Code.TOO_LARGE


@pytest.mark.parametrize(
    "filling",
    [b"\r\n--X", b"\r\n--", b"\r\n", b"-", b"\r\n--X ", b" \t", b"a: b\r\n", b'"\\', b"--X\r\n"],
    ids=repr,
)
@pytest.mark.parametrize("head", [b"", b"--X\r\nContent-Disposition: form-data; name=a\r\n\r\n"])
def test_no_body_takes_quadratic_time(head, filling):
    data = head + filling * (2**21 // len(filling))  # quadratic, this would take hours
    with pytest.raises(ServeError):
        parts(TYPE, data)


@given(st.binary(max_size=200), st.sampled_from([TYPE, FORM, "multipart/form-data", "text/plain", ""]))
def test_any_bytes_are_parts_or_refused(data, content_type):
    assert outcome(data, content_type) in (Code.INVALID, *range(201))


@given(st.text(max_size=300))
def test_any_content_type_is_read_or_refused(content_type):
    for prefix in ("", "multipart/form-data;", "multipart/form-data; boundary="):
        assert outcome(b"--X--", prefix + content_type) in (Code.INVALID, 0, 1)


pieces = st.sampled_from([b"--X", b"\r\n", b"--", b"X", b"a:", b'Content-Disposition: form-data; name="'])


@given(st.lists(pieces))
def test_bodies_of_telling_pieces_are_parts_or_refused(found):
    assert outcome(b"".join(found), TYPE) in (Code.INVALID, *range(len(found)))


@given(st.lists(st.tuples(st.text('ab"\\;= ü', max_size=5), st.binary(max_size=20)), max_size=5))
def test_what_is_written_is_read(fields):
    escaped = [(name.replace("\\", "\\\\").replace('"', '\\"'), data) for name, data in fields]
    boundary = b"no-field-has-this"
    data = body(*(part(f'form-data; name="{name}"', data) for name, data in escaped), boundary=boundary)
    kind = f"multipart/form-data; boundary={boundary.decode()}"
    assert [(name, bytes) for name, bytes, _, _ in read(data, kind)] == fields


@given(st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=10)), max_size=5))
def test_url_encoded_fields_are_read(fields):
    data = urlencode(fields).encode()
    assert read(data, FORM + "; charset=utf-8") == [(name, value, "", "") for name, value in fields]


def test_url_encoded_peculiarities():
    assert read(b"a=1&a=2&token&=3&b=&c+d=e+f%2B%zz&%ff=x", FORM) == [
        ("a", b"1", "", ""),
        ("a", b"2", "", ""),
        ("", b"3", "", ""),
        ("b", b"", "", ""),
        ("c d", b"e f+%zz", "", ""),
        ("ÿ", b"x", "", ""),
    ]
    assert read(b"", FORM) == []
    error = refusal(bytes(MAX_URL_ENCODED_BYTES + 1), FORM)
    assert error.code is Code.TOO_LARGE
    assert "--data-binary" in error.message


@pytest.mark.parametrize(
    "content_type", ["", "image/png", "application/json; charset=utf-8", "multipart/mixed"]
)
def test_any_other_body_is_one_part(content_type):
    data = b"--X--"
    (found,) = parts(content_type, data)
    assert found == RawPart(data, content_type)
    assert found.data is data
