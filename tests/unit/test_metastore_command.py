"""What the metastore's database says when it does not let us in."""

import metastore
import pytest


@pytest.mark.parametrize(
    ("state", "may_pass"),
    [("08006", True), ("53300", True), ("57P03", True), (None, True), ("28P01", False), ("3D000", False)],
)
def test_a_retry_is_promised_where_it_may_help(state: str | None, may_pass: bool):
    """Lost, too many connections, starting up, nothing said; a wrong password, a database that is not there."""
    assert metastore._may_pass(state) == may_pass
