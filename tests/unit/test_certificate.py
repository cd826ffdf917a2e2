"""The certificate shows what was asked for and nothing else, whatever names, keys and values hold."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from proven_models import proof, proven
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.proofs.certificate import document_of, html_of, text_of, written
from reconcile_jobs.proofs.comparison import Bucket, Comparison, Row
from reconcile_jobs.proofs.proving import Proof, _with_reasons
from reconcile_jobs.proofs.verdicts import Difference, megabytes, worst

CANARY = "canary-7f3a"
HOSTILE = [
    "orders", "</script><script>alert(1)</script>", "\" onload='alert(1)'", "{{ 7 * 7 }}{% raw %}", "a\u202eb",
    "\u05d0\u05d1\u05d2", "--><!--", "&amp;", "<b>", "x" * 2000, "a\nb\x00c", "'; drop table x; --",
]  # fmt: skip
VOID = {"meta", "br"}


class Page(HTMLParser):
    """A page whose tags are balanced; its elements, attributes, and the text that people see."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.seen = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.seen += data


def page_of(of: Proof) -> tuple[dict[str, Any], Page, str]:
    text = text_of(document_of(of, "jdbc:postgresql://host/shop", ["prove.py", "--models", "a b"]))
    html = html_of(text)
    return json.loads(text), Page(html), html


def test_a_page_of_hostile_names_is_only_the_page():
    known = Difference("k", "confirmed", "different", None, [{"column": "c"}])
    plain = page_of(proof([proven(differences=[known])]))[1]
    for name in HOSTILE:
        difference = Difference(name, "confirmed", "different", name, [{"column": name, "model": name, "source": name}])
        result = proven(name, [difference])
        result.reasons.append(name)
        document, page, html = page_of(proof([result], {name: name}))
        assert page.tags <= plain.tags | {"li", "ul"} and "script" not in page.tags
        assert {attribute for attribute, _ in page.attributes} <= {attribute for attribute, _ in plain.attributes}
        assert "\u202e" not in html and "\x00" not in html and "49" not in re.findall(r">(\d+)<", html)
        assert document["models"][0]["name"] == document["not_compared"][0]["name"] == name
        if name.isprintable():
            assert name in page.seen


def test_a_page_loads_nothing():
    _, page, html = page_of(proof([proven()]))
    links = [value for attribute, value in page.attributes if attribute in ("src", "href", "action", "background")]
    assert links == ["#m1"]
    assert "@import" not in html and "url(" not in html and "javascript:" not in html
    assert "default-src 'none'" in html and "prefers-color-scheme: dark" in html and "@media print" in html


def test_no_state_is_told_by_a_colour_alone():
    states = {"equal": proven(), "different": proven(differences=[Difference("1", "confirmed", "missing", None, [])])}
    states |= {"not proven": proven(quarantined=2), "in flight": proven()}
    states["in flight"].counts["in_flight"] = 1
    for result in states.values():
        result.add_reasons()
    _, page, _ = page_of(proof([*states.values()]))
    for state, sign in {"equal": "=", "different": "\u2260", "not proven": "?", "in flight": "\u2026"}.items():
        assert f"{sign}\xa0{state}" in page.seen
    assert [result.state for result in states.values()] == [*states]


def test_values_stand_there_only_if_they_were_asked_for():
    keys_alone = [Difference("7", "confirmed", "different", None, [{"column": "total"}])]
    with_values = [
        Difference("7", "confirmed", "different", None, [{"column": "total", "model": CANARY, "source": None}])
    ]
    assert "NULL at the source" not in page_of(proof([proven(differences=keys_alone)]))[1].seen
    seen = page_of(proof([proven(differences=with_values)]))[1].seen
    assert f"NULL at the source, {CANARY} in the model" in seen


def test_what_the_session_sets_and_the_source_holds_stand_nowhere():
    result = proven(differences=[Difference("7", "confirmed", "missing", None, [])])
    assert result.found
    result.found = Comparison(result.found.sums, 4, 1, [Row("=1", "0" * 64, (CANARY,))], ["=1"])
    document, _, html = page_of(proof([result]))
    for secret in (CANARY, "secret session"):
        assert secret not in html and secret not in json.dumps(document)


def test_a_page_of_five_hundred_models_with_many_differences():
    differences = [Difference(f"key {n} " + "long " * 40, "confirmed", "missing", None, []) for n in range(501)]
    results = [proven(f"model_{n}", differences if n == 3 else None) for n in range(500)]
    document, page, html = page_of(proof(results))
    assert html.count("<section ") == len(document["models"]) == 500
    assert "1 more rows are in the JSON." in page.seen and len(document["models"][3]["differences"]) == 501
    assert len(html) < 5_000_000


def test_the_page_names_the_document_by_its_digest():
    import hashlib

    text = text_of(document_of(proof([proven()]), "jdbc:x", ["prove.py"]))
    assert hashlib.sha256(text.encode()).hexdigest() in html_of(text)


def test_sums_keep_all_their_digits():
    document, _, _ = page_of(proof([proven()]))
    assert document["models"][0]["digests"]["source"] == {"rows": 12, "first": "3", "second": str(2**70)}
    assert document["again"] == "spark-submit prove.py --models 'a b'"


def test_the_document_says_all_that_was_found_of_a_model():
    result = proven(differences=[Difference("7", "confirmed", "missing", None, [])])
    result.plan.unprovable["doc"] = "why"  # type: ignore[index]
    document, _, _ = page_of(proof([result], {"lines": "no source"}))
    (model,) = document.pop("models")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", document.pop("made_at"))
    assert {"Python", "dbt-core", "dbt-spark", "pyspark", "dbt-reconcile"} == {*document.pop("tools")}
    assert document == {
        "format": 1, "state": "different", "began_at": "2026-11-24 00:00:00 UTC",
        "source": {"database": "PostgreSQL", "url": "jdbc:postgresql://host/shop"},
        "position": {"kind": "pg_snapshot", "value": "18642:18650:", "taken_at": "2026-11-24 10:02:11.5+00"},
        "not_compared": [{"name": "lines", "reason": "no source"}], "again": "spark-submit prove.py --models 'a b'",
    }  # fmt: skip
    sums = {"rows": 12, "first": "3", "second": str(2**70)}
    assert model.pop("counts") == result.totals()
    assert model == {
        "name": "orders", "unique_id": "model.shop.orders", "relation": "shop.orders", "table": "PostgreSQL s.orders",
        "state": "different", "reasons": [], "rows": {"source": 12, "model": 12}, "buckets": 4, "differing_buckets": 1,
        "rows_read": 1, "differences": [vars(result.differences[0])], "key": ["orders"],
        "columns": [{"name": "orders", "type": "bigint", "source_type": "orders", "kind": "number"}],
        "tolerances": {"orders": [{"round": 2}]}, "unprovable": {"doc": "why"}, "left_out": ["orders"],
        "only_in_source": ["orders"], "quarantined": 0, "pending": 0, "gaps": [], "batches": [1, 3],
        "delivered": {"is_complete": True, "reason": None}, "versions": {"model": 7, "source": None},
        "staged": {"last": 3}, "form_columns": ["orders"], "allowance": "10 minutes", "uncertainty": "1 hour",
        "digests": {"source": sums, "model": sums}, "sql": {"source": "SELECT orders", "model": "select orders"},
        "seconds": 1.2, "bytes": 70_000,
    }  # fmt: skip
    unread = proven()
    unread.found = None
    (model,) = page_of(proof([unread]))[0]["models"]
    assert (model["buckets"], model["differing_buckets"], model["rows_read"]) == (0, 0, 0)


def test_of_files_that_cannot_be_put_in_their_place_no_part_is_left(tmp_path: Path):
    (tmp_path / "proof.html").mkdir()
    with pytest.raises(UsageError, match=r"--certificate .*/proof\.html cannot be written: Is a directory\."):
        written(tmp_path / "proof.html", "page", "text")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["proof.html", "proof.json"]


def test_files_are_written_whole(tmp_path: Path):
    written(tmp_path / "proof.html", "page", "text")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["proof.html", "proof.json"]
    assert [(tmp_path / f"proof.{end}").read_text() for end in ("html", "json")] == ["page", "text"]
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        written(tmp_path / "nowhere" / "proof.html", "page", "text")


REASONS: dict[str, tuple[dict[str, Any], str]] = {
    "quarantine": ({"quarantined": 1}, "1 record of the model is in quarantine"),
    "pending": ({"pending": 2}, "2 rows of the model are pending"),
    "a gap": ({"gaps": ["x"]}, "the ledger does not account for all records of the model: x"),
}


@pytest.mark.parametrize("case", REASONS)
def test_equal_rows_are_not_proven_while_something_speaks_against_it(case: str):
    said, reason = REASONS[case]
    result = proven(**said)
    result.add_reasons()
    assert result.state == "not proven" and result.verdict == "unprovable"
    assert result.reasons == [reason]
    assert result.totals()["unprovable"] == 0 and reason in result.line(10)
    assert _with_reasons(result)["unprovable"] == 1


def test_an_empty_side_and_unread_rows_prove_nothing():
    for sums, unread, reason in (
        ((Bucket(), Bucket()), 0, "both sides are empty"),
        ((Bucket(9, 1, 1), Bucket(9, 2, 2)), 9, "too many to be read"),
    ):
        result = proven()
        result.found = Comparison(sums, 1, 1 if unread else 0, unread=unread)
        result.add_reasons()
        assert result.state == "not proven" and reason in result.reasons[0]
        counted = result.totals()
        assert (counted["compared"], counted["matched"], counted["in_flight"]) == (0, 0, 0), "no row was compared"
    allowed = proven()
    allowed.plan.model["allow_empty"] = True  # type: ignore[index]
    allowed.found = Comparison((Bucket(), Bucket()), 0, 0)
    allowed.add_reasons()
    assert allowed.state == "equal"


def test_rows_of_the_source_are_compared_whatever_the_model_has_or_lacks():
    for sides in ((12, 9), (9, 12)):
        result = proven()
        sums = [Bucket(rows, rows, rows) for rows in sides]
        result.found = Comparison((sums[0], sums[1]), 4, 1, [Row("=1", "0"), Row("=2", "0")], ["=1"], ["=3"])
        totals = result.totals()
        assert (totals["compared"], totals["matched"]) == (sides[0] - 1, sides[0] - 1)


def test_counts_go_with_the_digests_of_their_side():
    result = proven()
    result.found, result.counts = Comparison((Bucket(2, 3, 4), Bucket(2, 5, 6)), 4, 1, unread=2), {"tolerated": None}
    totals = result.totals()
    assert (totals["source_digest"], totals["model_digest"], totals["tolerated"]) == ("3:4", "5:6", "{}")
    result.counts["tolerated"] = '{"a": 1}'
    assert result.totals()["tolerated"] == '{"a": 1}'


def test_a_row_of_which_nothing_is_known_proves_nothing_and_one_in_flight_is_in_flight():
    result = proven()
    result.counts["in_flight"] = 1
    assert (result.state, result.verdict) == ("in flight", "in_flight")
    result.counts["unprovable"] = 1
    assert (result.state, result.verdict) == ("not proven", "unprovable")


def test_what_stands_in_the_way_of_a_key_is_said_once():
    result = proven()
    why = "the column doc is jsonb at the source: JSON has no canonical form"
    result.plan = replace(result.plan, unprovable={"doc": why}, complaints=[why])
    result.reasons += result.plan.complaints
    result.add_reasons()
    assert result.reasons == [why]


def test_a_column_without_a_canonical_form_is_never_equal():
    result = proven()
    result.plan.unprovable["doc"] = "the column doc is jsonb at the source: JSON has no canonical form"  # type: ignore[index]
    result.add_reasons()
    assert result.state == "not proven" and "JSON has no canonical form" in result.reasons[0]


def test_confirmed_differences_are_the_worst():
    result = proven(differences=[Difference("1", "confirmed", "missing", None, [])], quarantined=1)
    result.add_reasons()
    assert result.state == "different" and result.verdict == "confirmed"
    assert worst(["equal", "in flight", "not proven", "different"]) == "different"
    assert worst(["equal", "in flight", "not proven"]) == "not proven"
    assert worst(["equal", "in flight"]) == "in flight"


def test_the_line_of_a_model():
    result = proven(differences=[Difference("1", "confirmed", "missing", None, [])])
    result.counts["missing"] = 1
    assert result.line(8) == (
        "orders     12 rows   3 buckets equal, 1 differ   1 rows read   1 confirmed (1 missing)   0 in flight   1 s, "
        "0.1 MB from the source"
    )
    assert proven().line(8) == "orders     12 rows   equal   1 s, 0.1 MB from the source"
    result.found = Comparison((Bucket(1200, 1, 1), Bucket(1199, 2, 2)), 1000, 1, [Row("=1", "0")], ["=1"])
    result.counts |= {"unexpected": 2000, "different": 3, "in_flight": 4, "unprovable": 5, "confirmed": 1}
    assert result.line(1) == (
        "orders   1,200 rows at the source, 1,199 here   999 buckets equal, 1 differ   1 rows read   1 confirmed "
        "(1 missing, 2,000 unexpected, 3 different)   4 in flight   5 unprovable   1 s, 0.1 MB from the source"
    )
    nothing = proven()
    nothing.found = None
    nothing.reasons += ["a", "b"]
    assert nothing.line(8).splitlines() == ["orders     not proven", "           a", "           b"]


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0.0 kB"), (1500, "1.5 kB"), (49_999, "50.0 kB"), (50_000, "0.1 MB"), (10**10, "10,000.0 MB")],
)
def test_bytes_are_told_in_the_unit_that_fits(size: int, shown: str):
    assert megabytes(size) == shown
