"""Files become typed rows, or the first thing that is not as declared is named with its place."""

import pytest
from pyspark.sql import types as t
from reconcile_jobs.csv_records import Dialect
from reconcile_jobs.exact_text import reader_of
from reconcile_jobs.snapshots.snapshot_csv import Column, Complaint, typed_rows


def column(name: str, data_type: t.DataType, required: bool = False) -> Column:
    text = reader_of(data_type)
    assert text is not None
    return Column(name, text, required)


def rows(files: dict[str, str], columns: list[Column], header: bool = True) -> list[tuple]:
    lines = [(name, line) for name, text in files.items() for line in text.encode().splitlines()]
    return [tuple(row.values()) for batch in typed_rows(lines, columns, Dialect(), header) for row in batch.to_pylist()]


INTS = [column("a", t.IntegerType()), column("b", t.IntegerType())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2", [(1, 2)]),
        ('B,"a"\n1,2', [(2, 1)]),
        ("\n\na,b\n1,\n", [(1, None)]),
        ("a,b", []),
    ],
)
def test_headers_match_in_any_order_and_case(text, expected):
    assert rows({"x": text}, INTS) == expected


def test_exact_names_come_before_those_in_another_case():
    columns = [column("id", t.IntegerType()), column("b", t.IntegerType())]
    with pytest.raises(Complaint, match=r'has, unlike the schema, \\"ID\\"'):
        rows({"x": "ID,id,b\n1,2,3"}, columns)
    with pytest.raises(Complaint, match=r'has twice \\"id\\"'):
        rows({"x": "ID,Id,b\n1,2,3"}, columns)


def test_each_file_has_a_header_of_its_own():
    assert rows({"x": "a,b\n1,2", "y": "b,a\n1,2"}, INTS) == [(1, 2), (2, 1)]
    assert rows({"x": "1,2", "y": "3,4"}, INTS, header=False) == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("a,c", 'the header lacks "b" and has, unlike the schema, "c"'),
        ("a,b,c", 'the header has, unlike the schema, "c"'),
        ("a,b,b", 'the header has twice "b"'),
        ("a,", 'the header lacks "b" and has, unlike the schema, ""'),
        ("1,2", 'the header lacks "a", "b" and has, unlike the schema, "1", "2"'),
        ("\n", "the file has no header"),
    ],
)
def test_headers_that_do_not_match(header, why):
    with pytest.raises(Complaint) as refusal:
        rows({"x": header}, INTS)
    assert complaint(refusal) == {"file": "x", "line": 1, "why": why}


def complaint(refusal: pytest.ExceptionInfo) -> dict:
    import json

    return json.loads(str(refusal.value).removeprefix("reconcile-complaint: "))


@pytest.mark.parametrize(
    ("data_type", "row", "why"),
    [
        (t.LongType(), '1,"abc"', 'column v, bigint: "abc" is not a number'),
        (t.LongType(), "1,12.5", 'column v, bigint: "12.5" would be rounded to no decimal places'),
        (t.IntegerType(), "1,2147483648", 'column v, int: "2147483648" is outside -2147483648 to 2147483647'),
        (t.DecimalType(38, 10), "1,1.123456789012", "rounded to 10 decimal places"),
        (t.DecimalType(38, 10), f"1,{'4' * 40}", "has 40 digits before the decimal point, and 28 fit"),
        (t.DateType(), "1,2026-02-30", 'column v, date: "2026-02-30" names a day that does not exist'),
        (t.TimestampType(), "1,2026-01-01 00:00:00.123456789", "is more precise than a microsecond"),
        (t.VarcharType(3), "1,abcd", 'column v, varchar(3): "abcd" has 4 characters'),
        (t.LongType(), '1,""', 'column v, bigint: "" is not a number'),
        (t.StringType(), "1", "the line has 1 values, and there are 2 columns"),
        (t.StringType(), "1,2,3", "the line has 3 values, and there are 2 columns"),
        (t.StringType(), '1,a"b"', "value 2 has a quote inside"),
        (t.StringType(), ",1", "column id is NULL, but declared not null"),
        (t.LongType(), f"1,{'x' * 1000}", "x" * 100 + '..." is not a number'),
        (t.LongType(), "1,größe", 'column v, bigint: "größe" is not a number'),
        (t.LongType(), f"1,{'x' * 100}", "x" * 100 + '" is not a number'),
    ],
)
def test_what_is_not_as_declared(data_type, row, why):
    columns = [column("id", t.LongType(), required=True), column("v", data_type)]
    with pytest.raises(Complaint) as refusal:
        rows({"x": "id,v\n0,", "y": f'id,v\n\n2,\n{row}\n4,"bad"'}, columns)
    told = complaint(refusal)
    assert (told["file"], told["line"]) == ("y", 4)
    assert why in told["why"]


def test_many_rows_come_in_many_batches():
    lines = [("x", b"%d,%d" % (number, -number)) for number in range(25_000)]
    batches = list(typed_rows(lines, INTS, Dialect(), header=False))
    assert [batch.num_rows for batch in batches] == [10_000, 10_000, 5_000]
    assert batches[2].to_pylist()[-1] == {"a": 24_999, "b": -24_999}
