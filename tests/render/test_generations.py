"""What a model declares as generations is compared with each record, and nothing else; what is wrong is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from plain_dbt import PlainProject
from recorder import Recorder
from refusals import Refusal, run, thing
from shapes import MYSQL, ORACLE, POSTGRESQL, SQLSERVER, Life

BEGAN, BEGAN_AGAIN = "2026-11-21 00:00:00+00", "2026-11-23 00:00:00+00"
SCN = {"scn": 15869128507100, "read_timestamp": "2026-11-22 10:00:00+00"}
FILE = {"log_file": "mysql-bin.000017", "log_position": 4, "read_timestamp": "2026-11-22 10:00:00+00"}
LSN = {"lsn": "0/23E8430", "read_timestamp": "2026-11-22 10:00:00+00"}
LSN_OF_THREE = {**LSN, "lsn": "00000025:00000728:0003"}
TIME = f"write it as '{BEGAN}'"
NO_LIST = f"generations is not a list; write it as ['{BEGAN}'], or as [{SCN}]"
IN_ORDER = "list the generations in the order in which they began"
BEFORE = f"begins earlier than the generation before it in the list; {IN_ORDER}"
LIES_BEFORE = (
    f"has a smaller position than the generation before it in the list; {IN_ORDER}. If the log began anew "
    "between the two, list the time of this as a generation between them"
)


def less(position: dict[str, Any], *names: str, **more: Any) -> dict[str, Any]:
    return {name: value for name, value in {**position, **more}.items() if name not in names}


def of(source: str, generations: Any) -> Life:
    return Life(thing(source, arguments=f", generations={generations!r}"))


WRONG: dict[str, tuple[str, Any, list[str]]] = {
    "a time": (ORACLE, BEGAN, [NO_LIST]),
    "a position": (ORACLE, SCN, [NO_LIST]),
    "none at all": (ORACLE, None, [NO_LIST]),
    "everything": (
        ORACLE,
        ["2026-11-21 00:00:00", "2026-02-30 00:00:00Z", 7, less(SCN, "scn"), less(SCN, "read_timestamp", scn="abc")],
        [f"generation '2026-11-21 00:00:00' is not a time with a zone; {TIME}",
         f"generation '2026-02-30 00:00:00Z' is not a time with a zone; {TIME}",
         f"generation 7 is neither a time nor a position; {TIME}, or as {SCN}",
         f"generation {less(SCN, 'scn')} has no scn, so it has no position; write the generation as {SCN}",
         f"generation {{'scn': 'abc'}} has scn 'abc', which is not a valid whole number; write the generation as {SCN}",
         "generation {'scn': 'abc'} has no read_timestamp, the time from which backfill rows belong to it; write "
         f"the generation as {SCN}"],
    ),
    "a month that is none": (
        ORACLE, ["2026-13-01 00:00:00+00"], [f"generation '2026-13-01 00:00:00+00' is not a time with a zone; {TIME}"],
    ),
    "a part of a place": (
        ORACLE, [{**SCN, "rs_id": "0x0073cb.0000194d.0020"}],
        [f"generation {({**SCN, 'rs_id': '0x0073cb.0000194d.0020'})} has rs_id, which is not part of a position: "
         f"changes are ordered first by scn; write the generation as {SCN}"],
    ),
    "times that fall": (ORACLE, [BEGAN_AGAIN, BEGAN], [f"generation '{BEGAN}' {BEFORE}"]),
    "a reading before a time": (ORACLE, [BEGAN_AGAIN, SCN], [f"generation {SCN} {BEFORE}"]),
    "an scn that falls": (ORACLE, [SCN, {**SCN, "scn": 9}], [f"generation {({**SCN, 'scn': 9})} {LIES_BEFORE}"]),
    "a place in no file": (
        MYSQL, [less(FILE, "log_file")],
        [f"generation {less(FILE, 'log_file')} has log_position, which needs log_file too; write "
         f"the generation as {FILE}"],
    ),
    "a file without a number": (
        MYSQL, [{**FILE, "log_file": "mysql-bin", "log_position": -1}],
        [f"generation {({**FILE, 'log_file': 'mysql-bin', 'log_position': -1})} has {said}; write "
         f"the generation as {FILE}"
         for said in ("log_file 'mysql-bin', which is not a valid file name that ends with its number",
                      "log_position '-1', which is not a valid whole number")],
    ),
    "a file that falls": (
        MYSQL, [{**FILE, "log_file": "bin.1000000"}, {**FILE, "log_file": "bin.999999"}],
        [f"generation {({**FILE, 'log_file': 'bin.999999'})} {LIES_BEFORE}"],
    ),
    "a time of a commit": (
        POSTGRESQL, [{"source_timestamp": "2026-11-22 09:59:00+00", "read_timestamp": "2026-11-22 10:00"}],
        [f"generation {({'source_timestamp': '2026-11-22 09:59:00+00', 'read_timestamp': '2026-11-22 10:00'})} has "
         f"{said}; write the generation as {LSN}"
         for said in ("source_timestamp, which is not part of a position: changes are ordered first by lsn",
                      "read_timestamp '2026-11-22 10:00', which is not a time with a zone")],
    ),
    "an lsn of another source": (
        SQLSERVER, [LSN],
        [f"generation {LSN} has lsn '0/23E8430', which is not a valid LSN of SQL Server; write the "
         f"generation as {LSN_OF_THREE}"],
    ),
    "an lsn that falls": (
        POSTGRESQL, [{**LSN, "lsn": "0/10"}, {**LSN, "lsn": "0/9"}],
        [f"generation {({**LSN, 'lsn': '0/9'})} {LIES_BEFORE}"],
    ),
}  # fmt: skip
WRONGLY = {name: Refusal(run(lambda s=s, g=g: of(s, g)), says) for name, (s, g, says) in WRONG.items()}
REFUSED = list(WRONGLY.values())


@pytest.mark.parametrize("name", WRONGLY)
def test_all_that_is_wrong_with_generations_is_said_at_once(name: str) -> None:
    WRONGLY[name].check()


# --- what is compared -------------------------------------------------------------------------------------------------

RIGHT: dict[str, tuple[str, list[Any]]] = {
    "two repairs": (ORACLE, [SCN, {**SCN, "scn": "15869128507200"}]),
    "a new log": (ORACLE, [SCN, BEGAN_AGAIN, {**SCN, "scn": 9, "read_timestamp": "2026-11-23T00:00:00.5+0000"}]),
    "a file": (MYSQL, [less(FILE, "log_position"), FILE]),
    "an lsn": (POSTGRESQL, [{**LSN, "lsn": "0/9"}, {**LSN, "lsn": "0/A"}, {**LSN, "lsn": "1/0"}]),
    "an lsn of three": (SQLSERVER, [{**LSN_OF_THREE, "lsn": "9:ff:f"}, LSN_OF_THREE]),
    "an lsn of three, in hex": (SQLSERVER, [{**LSN_OF_THREE, "lsn": f"{log}:0:0"} for log in ("9", "a", "10")]),
    "zones": (POSTGRESQL, ["2026-11-22T00:00:00+02", "2026-11-21 22:00:00Z", "2026-11-21 17:30:00-04:30"]),
}


def compiled(source: str, generations: list[Any]) -> tuple[str, str]:
    """Return what tells a record's generation, and the SELECT around it."""
    sql = of(source, generations).project.compile("orders")
    told = re.search(r"\n {8}concat\(\n +(.*),\n +if\(is_backfill", sql)
    assert told
    return told[1], sql.replace(told[1], "")


def moments() -> set[str]:
    """Return the times, as SQL, of declarations that are right."""
    return {time for source, said in RIGHT.values() for time in _TIME.findall(compiled(source, said)[0])}


_TIME = re.compile(r"to_timestamp\('[^']+'\)")


def test_without_generations_nothing_is_compared() -> None:
    assert compiled(MYSQL, [])[0] == "'0000'"


def test_a_time_is_compared_with_the_reading_of_a_backfill_row_and_the_time_of_a_change() -> None:
    began = f"if(if(is_backfill, read_at, changed_at) >= to_timestamp('{BEGAN}'), 1, 0)"
    again = began.replace(BEGAN, BEGAN_AGAIN)
    assert compiled(MYSQL, [BEGAN, BEGAN_AGAIN])[0] == f"lpad(hex({began} + {again}), 4, '0')"


def test_a_position_is_compared_with_the_place_of_a_change() -> None:
    digits = "^\\\\s*\\\\d{1,18}\\\\s*$"
    scn = f"if('15869128507100' rlike '{digits}', lpad(hex(try_cast('15869128507100' as bigint)), 16, '0'), null)"
    read = "read_at >= to_timestamp('2026-11-22 10:00:00+00')"
    assert compiled(ORACLE, [SCN])[0] == (
        f"lpad(hex(if(if(is_backfill, {read}, `section scn` >= {scn}), 1, 0)), 4, '0')"
    )


def test_what_is_declared_is_all_that_differs() -> None:
    position = {"log_file": "mysql-bin.1000000", "log_position": 100, "read_timestamp": "2026-11-22 12:00:00+02"}
    times, mixed = compiled(MYSQL, [BEGAN, BEGAN_AGAIN]), compiled(MYSQL, [BEGAN, position, BEGAN_AGAIN])
    assert times[0] != mixed[0] and times[1] == mixed[1]


@pytest.mark.parametrize("name", RIGHT)
def test_generations_in_their_order_are_taken(name: str) -> None:
    of(*RIGHT[name]).project.run("orders")


def test_a_position_lies_in_the_log_between_the_times_around_it() -> None:
    times = [f"2026-11-2{day} 00:00:00+00" for day in range(1, 6)]
    macros = PlainProject(Recorder(), "demo").macros
    coordinates = {"scn": "lpad(hex(metadata.scn), 16, '0')"}
    sql = macros.hex_of_generation([*times[:2], SCN, *times[2:]], coordinates)
    (of_position,) = [one for one in sql.split(" + ") if "section scn" in one]
    compared = re.findall(r"changed_at >= to_timestamp\('([^']+)'\) (or|and)", of_position)
    assert compared == [(times[2], "or"), (times[1], "and")]


@pytest.mark.parametrize("generations", [
    [BEGAN, BEGAN], [BEGAN, "2026-11-21 01:00:00+01"], [SCN, SCN], [SCN["read_timestamp"], SCN],
    # Of a log that began anew, positions are compared with the positions in it alone, and times with all.
    [FILE, {**FILE, "log_position": 5}, {**FILE, "log_file": "mysql-bin.1000000", "log_position": 4}],
])  # fmt: skip
def test_generations_may_begin_at_one_moment_or_place(generations: list[Any]) -> None:
    source = MYSQL if FILE in generations else ORACLE
    assert of(source, generations).change_records
