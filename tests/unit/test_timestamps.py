"""Google's timestamps as whole nanoseconds, and back."""

import pytest
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.timestamps import as_text, asked_moment, nanoseconds, sort_key, zulu

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01 00:00:00.5z", SECOND // 2),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1970-01-01T05:30:00+05:30", 0),
        ("1970-01-01T05:45:00+0545", 0),
        ("1969-12-31T20:30:00-03:30", 0),
        ("1969-12-31 19:00:00-05", 0),
        ("1970-01-01 00:00:00.000000+00", 0),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("9999-12-31T23:59:59Z", 253402300799 * SECOND),
    ],
)
def test_a_moment_with_a_zone_is_known_to_the_nanosecond(text: str, moment: int):
    assert nanoseconds(text) == moment
    assert nanoseconds(as_text(moment)) == moment


@pytest.mark.parametrize("text", ["", "2026-05-01", "2026-05-01T09:00:00", "2026-05-01T09:00:00.1234567890Z", "now"])
def test_what_is_no_moment_is_refused(text: str):
    with pytest.raises(ValueError, match="is not a timestamp; write it as"):
        nanoseconds(text)


def test_texts_are_ordered_as_their_moments():
    texts = ["2026-05-01T09:00:00Z", "2026-05-01T09:00:00.000000001Z", "2026-05-01T09:00:00.1Z", "2026-05-01T09:00:01Z"]
    assert sorted(reversed(texts), key=sort_key) == texts
    assert sort_key("2026-05-01T09:00:00Z") == sort_key("2026-05-01T09:00:00.000000000Z")


def test_spanners_other_way_to_write_utc_is_z():
    assert zulu("2026-05-01T09:00:00.120000+00:00") == "2026-05-01T09:00:00.120000Z"
    assert zulu("2026-05-01T09:00:00.12Z") == "2026-05-01T09:00:00.12Z"


@pytest.mark.parametrize(
    ("text", "is_in_range"),
    [
        ("0001-01-01T00:00:00Z", True), ("0001-01-01T00:00:00+00:01", False),
        ("9999-12-31T23:59:59.999999999Z", True), ("9999-12-31T23:59:59-00:01", False),
        ("2026-05-01T09:00:00+18:59", True),
    ],
)  # fmt: skip
def test_a_moment_has_a_text_in_the_years_1_to_9999_in_utc(text: str, is_in_range: bool):
    if is_in_range:
        assert nanoseconds(as_text(nanoseconds(text))) == nanoseconds(text)
    else:
        with pytest.raises(ValueError, match="is outside the years 0001 to 9999 in UTC"):
            nanoseconds(text)


def test_an_offset_is_at_most_18_hours_and_its_minutes_59():
    for zone in ("+19:00", "+08:60", "-24"):
        with pytest.raises(ValueError, match="is not a timestamp"):
            nanoseconds(f"2026-05-01T09:00:00{zone}")


def test_an_option_that_is_no_moment_is_named():
    assert asked_moment("--at", "1970-01-01T00:00:01Z") == SECOND
    with pytest.raises(UsageError, match=r"^--at: now is not a timestamp; write it as 2026-05-01T09:00:00Z\.$"):
        asked_moment("--at", "now")
