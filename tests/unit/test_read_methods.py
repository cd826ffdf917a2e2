"""The words of Datastream's read methods are one rule, in the SQL of the models and in that of the expectations."""

import re
from pathlib import Path

from reconcile_jobs.expectations import _ENVELOPES

ENVELOPE = Path(__file__).parents[2] / "macros" / "change_records" / "datastream_envelope.sql"


def test_models_and_expectations_know_the_same_words():
    words = re.findall(r"read_method rlike ('[^']+')", ENVELOPE.read_text())
    assert len(words) == 2
    assert re.findall(r"read_method RLIKE ('[^']+')", _ENVELOPES["datastream"]) == words
