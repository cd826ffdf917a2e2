"""The real capture: every form of it, in any order of its deliveries, gives the tables that the source had."""

from __future__ import annotations

from collections import Counter

import pytest
from shop import COUNTS, MODELS, Shop
from tables import stored
from truth import COLUMNS, DELIVERIES, delivered, object_of, rows_of

# In `make test` these come delivery by delivery, the others all at once; in `make soak` the others do, these backwards.
STEPWISE = ("oracle", "mysql")
AT_ONCE = ("postgresql", "sqlserver")


@pytest.fixture(scope="module")
def json_shop(spark, tmp_path_factory) -> Shop:
    """Two sources delivery by delivery, a run after each; then the other two, all at once."""
    shop = Shop(spark, tmp_path_factory.mktemp("json"), "json", "json")
    for delivery in DELIVERIES:
        shop.deliver(delivery, sources=STEPWISE)
        shop.run("--select", *(f"{source}_*" for source in STEPWISE))
    shop.deliver(*DELIVERIES, sources=AT_ONCE)
    shop.run()
    return shop


@pytest.fixture(scope="module")
def avro_shop(spark, tmp_path_factory) -> Shop:
    """All at once."""
    shop = Shop(spark, tmp_path_factory.mktemp("avro"), "avro", "avro")
    shop.deliver(*DELIVERIES)
    shop.run()
    return shop


def balanced(shop: Shop) -> None:
    """Check law 3: every delivered record is in one class, and every batch in one range."""
    for source, table in shop.models:
        before = 0
        for row in shop.ledger(source, table):
            assert row["first_batch"] == before + 1, (source, table, row)
            before = row["last_batch"]
            assert row["delivered"] == sum(row[count] for count in COUNTS[1:]), (source, table, row)
            assert row["applied"] == sum(row[c] for c in ("inserted", "updated", "deleted", "tombstoned"))


def test_json_delivery_by_delivery_gives_the_truth(json_shop):
    assert json_shop.differences() == {}


def test_every_record_is_accounted_for_once(json_shop):
    for source in json_shop.sources:
        batches = [delivered(source, delivery) for delivery in DELIVERIES]
        if source in AT_ONCE:
            batches = [sum(batches, Counter())]
        for table in COLUMNS:
            rows = json_shop.ledger(source, table)
            numbers = range(1, len(batches) + 1)
            assert [(row["first_batch"], row["last_batch"]) for row in rows] == [(k, k) for k in numbers]
            assert [row["delivered"] for row in rows] == [batch[object_of(source, table)] for batch in batches]
            assert [row["kind"] for row in rows] == ["rebuild", "apply", "apply", "apply"][: len(batches)]
            assert sum(row["quarantined"] for row in rows) == 0
    balanced(json_shop)


def test_a_run_with_nothing_new_writes_nothing(json_shop):
    before = json_shop.versions()
    json_shop.run()
    assert json_shop.versions() == before


@pytest.mark.soak
@pytest.mark.matrix
def test_avro_in_one_run_gives_the_truth(avro_shop):
    assert avro_shop.differences() == {}
    balanced(avro_shop)


@pytest.mark.soak
@pytest.mark.parametrize(("source", "table"), MODELS)
@pytest.mark.matrix
def test_avro_equals_json_record_by_record(json_shop, avro_shop, source, table):
    envelope = ["_change_type", "_change_id", "_change_transaction", "_change_sequence", "_change_error"]
    # The Avro files' own times are in milliseconds.
    values = [*COLUMNS[table], *envelope, "date_trunc('MILLISECOND', _change_time) as changed_at"]
    json_side, avro_side = (
        Counter(
            row[0] for row in shop.changes(source, table).selectExpr(*values).selectExpr("to_json(struct(*))").collect()
        )
        for shop in (json_shop, avro_shop)
    )
    assert json_side.total() == sum(delivered(source, delivery)[object_of(source, table)] for delivery in DELIVERIES)
    assert json_side == avro_side


@pytest.fixture(
    scope="module", params=[pytest.param(source, marks=pytest.mark.matrix) for source in ("postgresql", "oracle")]
)
def fresh_shop(request, spark, tmp_path_factory) -> Shop:
    """One source, its models fresh, and beside each the same as a `current_view`."""
    root = tmp_path_factory.mktemp("fresh")
    shop = Shop(spark, root, f"fresh_{request.param}", "json", [request.param], options=", meta={'fresh': true}")
    for source, table in shop.models:
        text = (root / "project" / "models" / f"{source}_{table}.sql").read_text()
        text = text.replace("current_state", "current_view").replace(", meta={'fresh': true}", "")
        shop.project.model(f"{source}_{table}_view", text, COLUMNS[table])
    return shop


def test_fresh_views_equal_a_merge_of_everything_after_every_delivery(fresh_shop):
    """The merge lags behind by one delivery. A current_view shows the same before the last merge, and the truth."""
    shop = fresh_shop
    models = [f"{source}_{table}" for source, table in shop.models]
    for delivery in DELIVERIES:
        shop.deliver(delivery)
        if delivery > 1:
            fresh = {model: rows_of(shop.spark, f"{shop.schema}.{model}") for model in models}
        if delivery == DELIVERIES[-1]:
            for model in models:
                assert rows_of(shop.spark, f"{shop.schema}.{model}_view") == fresh[model]
        shop.run(*(["--select", *models] if delivery > 1 else []))
        for source, table in shop.models:
            model = f"{source}_{table}"
            live = f"select {', '.join(COLUMNS[table])} from {{base}} where not _deleted"
            shop.spark.sql(live, base=stored(shop.spark, f"{shop.schema}.{model}__base")).createOrReplaceTempView(
                "merged"
            )
            assert delivery == 1 or rows_of(shop.spark, "merged") == fresh[model]
        shop.spark.catalog.dropTempView("merged")
    assert shop.differences() == {}


@pytest.mark.matrix
def test_json_in_order_or_in_reverse_and_twice_and_all_at_once_gives_the_truth(spark, tmp_path):
    shop = Shop(spark, tmp_path, "orders", "json")
    for forward, backward in zip(DELIVERIES, reversed(DELIVERIES), strict=True):
        shop.deliver(forward, sources=AT_ONCE)
        shop.deliver(backward, sources=STEPWISE)
        shop.run()
    assert shop.differences() == {}
    balanced(shop)

    before = {model: len(shop.ledger(*model)) for model in MODELS}
    shop.deliver(*DELIVERIES, as_="again")
    shop.run()
    assert shop.differences() == {}
    for model in MODELS:
        row = shop.ledger(*model)[before[model]]
        assert row["applied"] == row["inserted"] == row["updated"] == row["deleted"] == row["tombstoned"] == 0
        assert row["superseded"] + row["duplicate"] == row["delivered"] > 0
    balanced(shop)

    shop.run("--full-refresh")
    assert shop.differences() == {}
    for model in MODELS:
        rebuilt = shop.ledger(*model)[-1]
        assert (rebuilt["kind"], rebuilt["first_batch"]) == ("rebuild", 1)
        assert rebuilt["delivered"] == sum(rebuilt[count] for count in COUNTS[1:])


@pytest.mark.matrix
def test_avro_deliveries_out_of_order_and_twice_between_each_other_give_the_truth(spark, tmp_path):
    shop = Shop(spark, tmp_path, "twice", "avro", ["oracle", "postgresql"])
    for number, deliveries in enumerate([(2, 4), (1, 2, 3, 4)]):
        shop.deliver(*deliveries, as_=str(number))
        shop.run()
    assert shop.differences() == {}
    balanced(shop)
