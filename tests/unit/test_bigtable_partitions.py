"""Partitions of a change stream: what is asked for, and where everything goes on, whatever splits and merges."""

import json
import random

import pytest
from bigtable_workload import advanced
from fake_bigtable import common
from reconcile_jobs.bigtable.partitions import (
    Closed,
    Moved,
    Outcome,
    Partition,
    Position,
    Request,
    RowRange,
    from_json,
    initial,
    lowest_watermark,
    requests,
    tiles,
    to_json,
    whole_table,
)
from reconcile_jobs.process.errors import Fault


def rows(text: str) -> RowRange:
    """Read a-m, or m- up to the end of the table."""
    start, end = text.split("-")
    return RowRange(start.encode(), end.encode())


def at(text: str, token: str) -> Position:
    return Position(rows(text), token)


def partition(text: str, *positions: Position, start: int | None = None, watermark: int = 5) -> Partition:
    return Partition(rows(text), positions, start, watermark)


def asked(partitions: list[Partition]) -> dict[str, list[str]]:
    """What is asked for: each range with its tokens."""
    return {
        f"{r.partition.rows.start.decode()}-{r.partition.rows.end.decode()}": [p.token for p in r.partition.positions]
        for r in requests(partitions)
    }


def closed(*parts: tuple[str, str, str], watermark: int = 9) -> Closed:
    """Each part with its token and its new partition."""
    return Closed(tuple((at(part, token), rows(target)) for part, token, target in parts), watermark)


@pytest.mark.parametrize(
    ("parts", "whole", "expected"),
    [
        (["-"], "-", True),
        (["-m", "m-"], "-", True),
        (["m-", "-m"], "-", True),
        (["a-c", "c-e"], "a-e", True),
        (["a-c"], "a-e", False),
        (["c-e"], "a-e", False),
        (["a-c", "d-e"], "a-e", False),
        (["a-c", "b-e"], "a-e", False),
        (["a-e", "a-e"], "a-e", False),
        (["a-"], "a-e", False),
        (["a-e"], "a-", False),
        (["-m", "m-", "z-"], "-", False),
        ([], "-", False),
    ],
)
def test_tiles(parts: list[str], whole: str, expected: bool):
    assert tiles([rows(part) for part in parts], rows(whole)) is expected


def test_a_table_begins_with_all_of_its_partitions():
    first = initial([rows("m-"), rows("-m")], 7)
    assert [(p.start, p.low_watermark, p.is_whole) for p in first] == [(7, 7, True)] * 2
    with pytest.raises(Fault, match="do not cover each row key exactly once"):
        initial([rows("-m"), rows("n-")], 7)
    with pytest.raises(Fault, match="do not cover each row key exactly once"):
        initial([], 7)


def test_what_was_read_goes_on_at_its_token_and_what_was_not_where_it_was():
    before = initial([rows("-m"), rows("m-")], 7)
    after = advanced(requests(before), {rows("-m"): Moved("t1", 8)})
    assert after == [partition("-m", at("-m", "t1"), watermark=8), partition("m-", start=7, watermark=7)]
    assert lowest_watermark(after) == 7
    again = advanced(requests(after), {rows("-m"): Moved(None, 8), rows("m-"): Moved("t2", 9)})
    assert asked(again) == {"-m": ["t1"], "m-": ["t2"]}


def test_a_split_has_a_partition_for_each_token():
    after = advanced(requests(initial([rows("-")], 7)), {rows("-"): closed(("-m", "t1", "-m"), ("m-", "t2", "m-"))})
    assert asked(after) == {"-m": ["t1"], "m-": ["t2"]}
    assert {p.low_watermark for p in after} == {9}


def test_a_merge_is_asked_for_when_its_tokens_tile_it():
    before = initial([rows("-c"), rows("c-m"), rows("m-")], 7)
    one = advanced(requests(before), {rows("-c"): closed(("-c", "t1", "-m")), rows("m-"): Moved("t3", 8)})
    # c-m has not said that it is closed: what waits is asked for by itself.
    assert asked(one) == {"-c": ["t1"], "c-m": [], "m-": ["t3"]}
    both = advanced(requests(one), {rows("-c"): closed(("-c", "t4", "-m")), rows("c-m"): closed(("c-m", "t2", "-m"))})
    assert asked(both) == {"-m": ["t4", "t2"], "m-": ["t3"]}


def test_a_part_that_waits_and_was_not_read_goes_on_waiting():
    before = initial([rows("-c"), rows("c-")], 7)
    one = advanced(requests(before), {rows("-c"): closed(("-c", "t1", "-"))})
    two = advanced(requests(one), {rows("c-"): closed(("c-", "t2", "-"))})
    assert asked(two) == {"-": ["t1", "t2"]}


def test_a_merge_that_is_undone_goes_on_as_the_partitions_of_before():
    before = initial([rows("-c"), rows("c-")], 7)
    one = advanced(requests(before), {rows("-c"): closed(("-c", "t1", "-")), rows("c-"): Moved("t2", 8)})
    two = advanced(requests(one), {rows("-c"): Moved("t3", 9), rows("c-"): Moved("t4", 9)})
    assert asked(two) == {"-c": ["t3"], "c-": ["t4"]}


def test_a_merge_that_splits_elsewhere_before_it_was_opened():
    before = initial([rows("-c"), rows("c-")], 7)
    merged = advanced(requests(before), {rows("-c"): closed(("-c", "t1", "-")), rows("c-"): closed(("c-", "t2", "-"))})
    assert asked(merged) == {"-": ["t1", "t2"]}
    split = advanced(requests(merged), {rows("-"): closed(("-k", "t3", "-k"), ("k-", "t4", "k-"))})
    assert asked(split) == {"-k": ["t3"], "k-": ["t4"]}


def test_partitions_that_are_cut_anew_share_their_tokens():
    # As the documentation of CloseStream draws it: [B, D) ends, and its halves belong to [A, C) and [C, E).
    before = initial([rows("-b"), rows("b-d"), rows("d-")], 7)
    one = advanced(requests(before), {rows("b-d"): closed(("b-c", "t1", "-c"), ("c-d", "t2", "c-"))})
    assert asked(one) == {"-b": [], "b-c": ["t1"], "c-d": ["t2"], "d-": []}
    two = advanced(requests(one), {rows("-b"): closed(("-b", "t3", "-c")), rows("d-"): closed(("d-", "t4", "c-"))})
    assert asked(two) == {"-c": ["t3", "t1"], "c-": ["t2", "t4"]}


@pytest.mark.parametrize(
    "parts",
    [
        [("-k", "t1", "-k")],
        [("-k", "t1", "-k"), ("l-m", "t2", "l-m")],
        [("-", "t1", "-")],
        [],
    ],
)
def test_tokens_that_are_not_of_all_of_a_partition_are_refused(parts: list[tuple[str, str, str]]):
    with pytest.raises(Fault, match=r"-6d was closed do not cover its whole range"):
        advanced(requests(initial([rows("-m"), rows("m-")], 7)), {rows("-m"): closed(*parts)})


def test_the_lowest_watermarks_are_asked_for_first():
    some = [partition("-c", at("-c", "1"), watermark=9), partition("c-", at("c-", "2"), watermark=3)]
    assert [r.partition.low_watermark for r in requests(some)] == [3, 9]


def test_what_is_staged_is_read_again():
    some = [
        Partition(RowRange(b"", b"\xff\x00"), (), 1_700_000_000_123_456_000, 1_700_000_000_000_000_000),
        Partition(RowRange(b"\xff\x00", b""), (Position(RowRange(b"\xff\x00", b""), 'a"b'),), None, 10**18),
    ]
    staged = json.loads(json.dumps(to_json(some)))
    assert staged[0]["start"] == "2023-11-14T22:13:20.123456000Z"
    assert staged[0]["end_key"] == "/wA="
    assert from_json(staged) == some


KEYS = [bytes([letter]) for letter in b"abcdefghij"]


class Model:
    """A log of one entry at a time for each key; a token is a place in it, for each key of a range."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.live = [RowRange(b"", b"d"), RowRange(b"d", b"g"), RowRange(b"g", b"")]
        self.end = 0
        self.read: dict[bytes, int] = {key: 0 for key in KEYS}

    def reshard(self) -> None:
        edges = sorted(self.chance.sample(KEYS[1:], self.chance.randrange(5)))
        if self.chance.random() < 0.6:  # mostly one edge comes or goes
            known = [part.start for part in self.live[1:]]
            edges = sorted(set(known) ^ {self.chance.choice(KEYS[1:])})
        self.live = [RowRange(a, b) for a, b in zip([b"", *edges], [*edges, b""], strict=True)]

    def answer(self, request: Request) -> Outcome:
        """Read a partition up to the end of the log, or see where it belongs."""
        whole = request.partition.rows
        assert request.partition.is_whole
        for position in request.partition.positions:
            for key, place in json.loads(position.token).items():
                assert self.read[key.encode()] == place, "what was read is read again, or something is left out"
        keys = [key for key in KEYS if whole.start <= key and (not whole.end or key < whole.end)]
        if whole in self.live or self.chance.random() < 0.5:
            for key in keys:
                self.read[key] = self.end

        def token(part: RowRange) -> str:
            inside = [key for key in keys if part.start <= key and (not part.end or key < part.end)]
            return json.dumps({key.decode(): self.read[key] for key in inside})

        if whole in self.live:
            return Moved(token(whole), self.end)
        parts = []
        for new in self.live:
            both = common((new.start, new.end), (whole.start, whole.end))
            if both:
                parts.append((Position(RowRange(*both), token(RowRange(*both))), new))
        return Closed(tuple(parts), self.end)


@pytest.mark.parametrize("seeds", [range(200), pytest.param(range(200, 2000), marks=pytest.mark.soak)], ids=repr)
def test_every_key_is_read_once_whatever_splits_and_merges(seeds: range):
    for seed in seeds:
        model = Model(random.Random(seed))
        read_while_partitions_change(model)
        assert set(model.read.values()) == {model.end}, f"seed {seed}: something was not read"


def read_while_partitions_change(model: Model) -> None:
    """Read a log that grows while partitions come and go; then, left alone, to its end."""
    chance = model.chance
    partitions = initial(model.live, 0)
    for _ in range(15):
        model.end += 1
        outcomes: dict[RowRange, Outcome] = {}
        plan = requests(partitions)
        for request in plan:
            if chance.random() < 0.3:
                model.reshard()
            if chance.random() < 0.8:
                outcomes[request.partition.rows] = model.answer(request)
        partitions = from_json(to_json(advanced(plan, outcomes)))
    model.end += 1
    for _ in range(4):
        plan = requests(partitions)
        partitions = advanced(plan, {r.partition.rows: model.answer(r) for r in plan})
    assert [p.rows for p in partitions] == model.live


def test_parts_of_one_partition_are_as_far_as_the_one_that_lags():
    parts = [partition("a-m", at("a-f", "x"), watermark=9), partition("a-m", at("f-m", "y"), watermark=3)]
    rest = [partition("-a", at("-a", "w"), watermark=20), partition("m-", at("m-", "z"), watermark=20)]
    whole = whole_table([*parts, *rest])
    assert [found.low_watermark for found in whole] == [20, 3, 20]
    assert lowest_watermark(whole) == 3


BOUNDS = (b"", b"b", b"d", b"f")


@pytest.mark.parametrize("one", [RowRange(a, b) for a in BOUNDS for b in BOUNDS if not b or a < b])
def test_a_range_of_rows_contains_another_if_all_its_keys_are_there(one: RowRange) -> None:
    keys = [bytes([key]) for key in range(ord("a"), ord("h"))] + [b"\xff"]

    def of(rows: RowRange) -> set[bytes]:
        return {key for key in keys if rows.start <= key and (not rows.end or key < rows.end)}

    for other in (RowRange(a, b) for a in BOUNDS for b in BOUNDS if not b or a < b):
        assert one.contains(other) == (of(other) <= of(one)), other
