"""What the package's tables say of their columns fits into every metastore."""

from __future__ import annotations

import re
from pathlib import Path

SQL = Path(__file__).resolve().parents[1] / "sql"
_COMMENT = re.compile(r"\bcomment '((?:[^'\\]|\\.)*)'")
# Hive's metastore has so many characters for a comment of a column. Derby refuses a longer one, and Iceberg's tables
# are then not created; of Delta's tables the metastore has no columns.
_MOST = 256


def test_a_comment_of_a_column_has_at_most_256_characters() -> None:
    comments = {text for path in SQL.rglob("*.sql") for text in _COMMENT.findall(path.read_text())}
    assert any(text.startswith("apply: new batches") for text in comments), "the comments are not found any more"
    assert [text for text in comments if len(text) > _MOST] == []
