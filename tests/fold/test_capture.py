"""The real capture: every form of it, in any order of its deliveries, gives the tables that the source had."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lakes import stored
from memory import Memory
from pyspark.sql import SparkSession
from shop import COUNTS, MODELS, Shop, Way, records
from truth import COLUMNS, DELIVERIES, SOURCES, counted, delivered, object_of

ALL = tuple(DELIVERIES)
FORMS = {form: Way(form, (ALL,)) for form in ("json", "avro")}


@pytest.fixture(scope="module", params=SOURCES)
def forms(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Shop]:
    """Both forms of a source, side by side."""
    with Memory(spark) as memory:
        models = [(source, table) for source, table in MODELS if source == request.param]
        shop = Shop(memory, "forms", models, FORMS, materialized="current_view")
        shop.deliver(1)
        shop.run()
        yield shop


def test_the_files_hold_every_record_that_was_delivered(forms: Shop) -> None:
    (source,) = forms.sources
    for delivery in DELIVERIES:
        for form in FORMS:
            held = {object_of(source, table): len(records(source, table, form, delivery)) for table in COLUMNS}
            assert held == delivered(source, delivery)


@pytest.mark.parametrize("table", COLUMNS)
def test_both_forms_of_all_deliveries_give_the_truth(forms: Shop, table: str) -> None:
    (source,) = forms.sources
    assert forms.differences(source, table) == {}


@pytest.mark.soak
@pytest.mark.parametrize("table", COLUMNS)
def test_avro_equals_json_record_by_record(forms: Shop, table: str) -> None:
    (source,) = forms.sources
    envelope = ["_change_type", "_change_id", "_change_transaction", "_change_error"]
    # Avro's own times are in milliseconds; the last section of a sequence is a hash of all values, the way too.
    values = [*COLUMNS[table], *envelope, "date_trunc('MILLISECOND', _change_time)"]
    values += ["regexp_replace(_change_sequence, '/[^/]*$', '')"]
    rows = forms.memory.sql(f"""
select sum(json), sum(avro), count_if(json <> avro)
from (
    select count_if(way = 'json') as json, count_if(way = 'avro') as avro
    from `forms`.`{source}_{table}__changes`
    group by {", ".join(values)}
)""")
    count = sum(len(records(source, table, "json", delivery)) for delivery in DELIVERIES)
    assert tuple(rows.first() or ()) == (count, count, 0)


# --- one after another -----------------------------------------------------------------------------------------------

HALVES = {
    "forwards": Way("json", ((1, 2), (3, 4))),
    "backwards": Way("json", ((4, 3), (2, 1))),
    "out of order and twice": Way("json", ((2, 4), ALL)),
    "avro twice": Way("avro", ((1, 3), (2, 4, 3, 1))),
}
# Delivery by delivery, and at last everything again.
SINGLY = {
    "forwards": Way("json", ((1,), (2,), (3,), (4,), ALL)),
    "backwards": Way("json", ((4,), (3,), (2,), (1,), ALL)),
    "at once": Way("json", ((), ALL, (), (), ALL)),
    "avro out of order": Way("avro", ((3,), (1,), (4,), (2,), ALL)),
}
STEPWISE = [
    pytest.param("mysql", "orders", HALVES, id="mysql-orders"),
    pytest.param("sqlserver", "order_lines", HALVES, id="sqlserver-order_lines", marks=pytest.mark.matrix),
    *(
        pytest.param(source, table, SINGLY, id=f"{source}-{table}-singly", marks=pytest.mark.matrix)
        for source, table in MODELS
    ),
]


@pytest.mark.parametrize(("source", "table", "ways"), STEPWISE)
def test_in_any_order_at_once_and_twice_the_deliveries_give_the_truth(
    spark: SparkSession, source: str, table: str, ways: dict[str, Way]
) -> None:
    """After each run; and before it a fresh view shows what the merge then leaves."""
    last, model = len(ways["forwards"].batches), f"{source}_{table}"
    with Memory(spark) as memory:
        shop = Shop(memory, "steps", [(source, table)], ways, options=", meta={'fresh': true}")
        for batch in range(1, last + 1):
            shop.deliver(batch)
            fresh = counted(memory.table(f"steps.{model}")) if batch > 1 else None
            shop.run()
            merged = stored(memory, f"steps.{model}__base").where("not _deleted").select("way", *COLUMNS[table])
            assert fresh is None or counted(merged) == fresh
        assert shop.differences(source, table) == {}

        lines = shop.ledger(source, table)
        assert [(line["first_batch"], line["last_batch"]) for line in lines] == [(k, k) for k in range(1, last + 1)]
        assert [line["kind"] for line in lines] == ["rebuild", *["apply"] * (last - 1)]
        assert [line["delivered"] for line in lines] == [shop.delivered(source, table, k) for k in range(1, last + 1)]
        for line in lines:
            assert line["delivered"] == sum(line[count] for count in COUNTS[1:])
            assert line["applied"] == sum(line[count] for count in ("inserted", "updated", "deleted", "tombstoned"))
            assert line["quarantined"] == 0
        tables = ["reconcile_ledger", f"{model}__base", f"{model}__quarantine"]
        before = [memory.version(f"steps.{name}") for name in tables]
        assert shop.run() == {model: "nothing new"}
        assert [memory.version(f"steps.{name}") for name in tables] == before
        if ways is SINGLY:
            assert lines[-1]["applied"] == 0
            shop.run(full_refresh=True)
            assert shop.differences(source, table) == {}
            rebuilt = shop.ledger(source, table)[-1]
            assert (rebuilt["kind"], rebuilt["first_batch"], rebuilt["last_batch"]) == ("rebuild", 1, last)
            assert rebuilt["delivered"] == sum(line["delivered"] for line in lines)
