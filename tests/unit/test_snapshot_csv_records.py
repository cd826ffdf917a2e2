"""CSV is split into what was written, with quoted and unquoted values told apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reconcile_jobs.csv_records import Broken, Dialect, records

POSTGRES = Dialect(null="\\N")


def split(text: str | bytes, dialect: Dialect = POSTGRES, columns: int = 2) -> list[tuple[int, list[str | None]]]:
    raw = text.encode() if isinstance(text, str) else text
    lines = raw.split(b"\n")
    return list(records(lines[:-1] if lines[-1] == b"" else lines, dialect, columns))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a,b", ["a", "b"]),
        (r"\N,\N", [None, None]),
        (r'"\N",b', ["\\N", "b"]),
        (r"\N ,\n", ["\\N ", "\\n"]),
        (r'"\\N","\"', ["\\\\N", "\\"]),
        ('"a""b",""""', ['a"b', '"']),
        ('"",', ["", ""]),
        ('"a,b",c d', ["a,b", "c d"]),
        ('"a\nb\r\n\nc",d', ["a\nb\r\n\nc", "d"]),
        ("Ελένη,李雷", ["Ελένη", "李雷"]),
        ("NULL,null", ["NULL", "null"]),
        ("a\0,b", ["a\0", "b"]),
        ("a\u2028b\x0b,c\x85", ["a\u2028b\x0b", "c\x85"]),
    ],
)
@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_one_record(text, values, ending):
    assert split(text + ending) == [(1, values)]


def test_the_empty_marker_is_the_default():
    assert split(',""\n', Dialect()) == [(1, [None, ""])]


def test_records_are_numbered_by_their_first_line():
    assert split('a,b\n"c\n\nd",e\n\nf,g\n') == [(1, ["a", "b"]), (2, ["c\n\nd", "e"]), (6, ["f", "g"])]


def test_an_empty_line_is_a_record_of_one_column_only():
    assert split("a\n\n", Dialect(), 1) == [(1, ["a"]), (2, [None])]
    assert split("\n\na,b\n\n") == [(3, ["a", "b"])]
    assert split("") == []


def test_the_last_record_may_have_no_line_end():
    assert split("a,b\nc,d") == split("a,b\r\nc,d") == [(1, ["a", "b"]), (2, ["c", "d"])]
    # The lines come without their line feeds: a last line feed without CR cannot be seen, and changes no value.
    assert split("a,b\r\nc,d\n") == [(1, ["a", "b"]), (2, ["c", "d"])]


def test_a_value_with_an_unquoted_line_feed_is_not_two_records():
    with pytest.raises(Broken, match="it ends with LF") as refusal:
        split("a\r\nb\nc\r\n", columns=1)
    assert refusal.value.line == 2


def test_a_byte_order_mark_is_no_text():
    assert split(b"\xef\xbb\xbfa,b\n\xef\xbb\xbfc,d\n") == [(1, ["a", "b"]), (2, ["\ufeffc", "d"])]
    assert split(b'\xef\xbb\xbf"a\nb",c\n') == [(1, ["a\nb", "c"])]


@pytest.mark.parametrize("delimiter", [";", "\t", "|", "^", "]", "\\", "-", " ", "§"])
def test_other_delimiters(delimiter):
    assert split(f'"a{delimiter}b"{delimiter}c,d', Dialect(delimiter)) == [(1, [f"a{delimiter}b", "c,d"])]


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ('a,b\n5" pipe,c\nd,e\n', 2, "never closed"),
        ('a,b\n5" pipe,"c"\nd,"e"\nf,g"\n', 2, "value 1 has a quote inside"),
        ('a,b"c"\n', 1, "value 2 has a quote inside"),
        ('"a"b,c\n', 1, "value 1 goes on after its closing quote"),
        ('a, "b"\n', 1, "value 2 has a quote inside"),
        ('a,b\n"c\n,d\n', 2, "never closed"),
        ("a,b\nc,d\r\n", 2, "it ends with CR LF, and the lines before it with LF"),
        ("a,b\r\nc,d\ne,f\r\n", 2, "it ends with LF, and the lines before it with CR LF"),
        ('a,b\r\n"c\r\n",d\n"e', 2, "it ends with LF, and the lines before it with CR LF"),
        ("a,b\r\n\n\r\n", 2, "it ends with LF, and the lines before it with CR LF"),
        ("a\rb,c\n", 1, "value 1 holds a line break"),
        (b"a,b\nc,\xff\n", 2, "byte 3 of the record is not UTF-8"),
        ("a,b\n".encode("utf-16"), 1, "not UTF-8"),
    ],
)
def test_what_is_no_csv(text, line, why):
    with pytest.raises(Broken, match=why) as refusal:
        split(text)
    assert refusal.value.line == line


CELL = st.none() | st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('",\\N\r\n'), max_size=8)


@given(st.lists(st.lists(CELL, min_size=3, max_size=3), max_size=5), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_what_was_written_is_read(rows, ending, everything_quoted):
    def write(value: str | None) -> str:
        if value is None:
            return "\\N"
        plain = not everything_quoted and value != "\\N" and not set(value) & set('",\r\n')
        return value if plain and not value.startswith("\ufeff") else '"' + value.replace('"', '""') + '"'

    text = "".join(",".join(map(write, row)) + ending for row in rows)
    assert [values for _, values in split(text, columns=3)] == rows


def test_a_long_broken_record_costs_no_search():
    with pytest.raises(Broken, match="goes on"):
        split(b'"' + b'""' * 500_000 + b'a"b,c\n')


def test_a_record_over_several_lines_may_have_as_many_bytes_as_was_said_before_its_last_line():
    lines = [b"1", b'"a', b"b", b'c"']
    assert list(records(lines, Dialect(), 1, longest=5)) == [(1, ["1"]), (2, ["a\nb\nc"])]
    with pytest.raises(Broken, match="a quote that opens there is not closed within 4 bytes") as refusal:
        list(records(lines, Dialect(), 1, longest=4))
    assert refusal.value.line == 2
