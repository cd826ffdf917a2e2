"""Rows of tables as the JSON of staging: a text that JSON cannot hold is refused, wherever it lies in a value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from reconcile_jobs.rows_as_json import EXACT, rows_as_json

VALUES = {
    "a text": "{0}",
    "in an array": "array('a', {0})",
    "in the values of a map": "map('k', 'a', 'l', {0})",
    "in the keys of a map": "map({0}, 1)",
    "in a struct": "named_struct('number', 1, 'a name', {0})",
    "deep": "array(null, named_struct('m', map(1, array(null, named_struct('t', {0})))))",
}


def as_json(spark: SparkSession, value: str) -> Any:
    session = spark.newSession()
    for name, setting in EXACT.items():
        session.conf.set(name, setting)
    rows = session.sql(f"select {value} as v")
    return json.loads(rows.selectExpr(f"{rows_as_json(rows, ['v'])} as text").collect()[0].text)["v"]


@pytest.mark.parametrize("where", VALUES)
def test_a_text_that_is_no_utf8_is_refused(spark: SparkSession, where: str) -> None:
    with pytest.raises(PySparkException, match="a text of the column v is not UTF-8"):
        as_json(spark, VALUES[where].format("cast(X'61FF62' as string)"))


@pytest.mark.parametrize("where", VALUES)
def test_other_texts_and_null_are_kept(spark: SparkSession, where: str) -> None:
    assert "größe" in json.dumps(as_json(spark, VALUES[where].format("'größe'")), ensure_ascii=False)
    if "keys" not in where:
        as_json(spark, VALUES[where].format("cast(null as string)"))
