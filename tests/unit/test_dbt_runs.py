"""dbt runs with the appends: when something came, at the beginning, and again where it failed."""

import io
from dataclasses import dataclass, field
from threading import Event
from types import SimpleNamespace

import pytest
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.dbt_runs import DbtRuns, append_and_run
from reconcile_jobs.process.errors import DataError, Fault, UsageError


@dataclass
class Totals:
    records: int = 0
    links: int = field(default=0, metadata={"latest": True})
    first_batch: int | None = None
    last_batch: int | None = None
    watermark: str | None = None


NOTHING = Totals(links=1)


def batch(number):
    return Totals(records=10, links=2, first_batch=number, last_batch=number, watermark=f"at {number}")


class Dbt(DbtRuns):
    """Fails in the runs of these numbers."""

    def __init__(self, fails=(), ends=None):
        super().__init__("build", Event(), io.StringIO())
        self.at, self._fails = [], fails

    def run(self):
        self.totals.runs += 1
        self.at.append(clock.passes)
        self.totals.failed = ["orders"] if self.totals.runs in self._fails else []
        return True


class Clock:
    """One that waits for nothing."""

    def __init__(self):
        self.passes, self.waited = 0, []

    def seconds(self):
        return 2.0 * self.passes

    def wait(self, event, seconds):
        self.waited.append(seconds)
        return event.is_set()


def go(passes, dbt, every=10.0, refused=False):
    """Append what each pass brings; stop before the last pass ends."""
    global clock
    clock, stop = Clock(), Event()

    def append():
        clock.passes += 1
        if clock.passes == len(passes):
            stop.set()
        return passes[clock.passes - 1]

    return append_and_run(append, dbt, every, stop, lambda: refused, clock)


def test_dbt_runs_at_the_beginning_and_with_each_batch():
    dbt = Dbt()
    totals = go([NOTHING, NOTHING, batch(1), NOTHING, batch(2), NOTHING], dbt)
    assert dbt.at == [1, 3, 5]
    assert totals == Totals(records=20, links=1, first_batch=1, last_batch=2, watermark="at 2")
    assert clock.waited == [8.0] * 5


def test_what_failed_is_tried_again_until_it_does_not():
    dbt = Dbt(fails=(2, 3))
    go([NOTHING, batch(1), NOTHING, NOTHING, NOTHING, NOTHING], dbt)
    assert dbt.at == [1, 2, 3, 4]
    dbt.refuse_failed()


def test_what_failed_last_is_named_at_the_end():
    dbt = Dbt(fails=(1,))
    stopped = Event()
    append_and_run(lambda: batch(1), dbt, None, stopped, lambda: False)
    with pytest.raises(DataError, match=r"in the last run of dbt orders failed"):
        dbt.refuse_failed()


def test_what_is_not_as_expected_is_not_merged():
    dbt = Dbt()
    go([batch(1), NOTHING], dbt, refused=True)
    assert dbt.at == []


def test_a_stop_before_dbt_has_ended_is_no_success_unless_somebody_comes_back():
    for every, is_fault in ((None, True), (10.0, False)):
        dbt, stop = Dbt(), Event()
        dbt.run = lambda stop=stop: stop.set() or False
        try:
            append_and_run(lambda: batch(1), dbt, every, stop, lambda: False)
            assert not is_fault
        except Fault as fault:
            assert is_fault
            assert "Stopped before everything was merged" in str(fault)


def test_a_command_that_cannot_be_read_is_refused():
    with pytest.raises(UsageError, match="cannot be read: No closing quotation"):
        DbtRuns("build --select 'tag:shop", Event(), io.StringIO())


@pytest.mark.parametrize("command", ["", "test", "--select build_me", "docs generate"])
def test_a_command_that_runs_no_models_is_refused(command):
    with pytest.raises(UsageError, match=r"runs no models: write it as --dbt 'build --select tag:shop'"):
        DbtRuns(command, Event(), io.StringIO())


def test_a_run_that_somebody_comes_back_for_may_end_early():
    Caller(comes_back=True).refuse_early_end()
    with pytest.raises(Fault, match="Stopped before everything was appended"):
        Caller().refuse_early_end()


def dbt_that_ends(monkeypatch, *ends):
    """Let each run of dbt end as it is said here; return the words of each."""
    given, left = [], list(ends)

    def invoked(words, stop):
        given.append(words)
        print("what dbt says")
        return left.pop(0)

    monkeypatch.setattr("reconcile_jobs.process.dbt_runs.invoke", invoked)
    return given


def end(success, exception=None, **statuses):
    results = [SimpleNamespace(node=SimpleNamespace(name=name), status=status) for name, status in statuses.items()]
    return SimpleNamespace(success=success, exception=exception, result=SimpleNamespace(results=results))


def test_what_dbt_could_not_run_is_counted_and_named_and_dbt_speaks_where_it_is_told(monkeypatch, capsys):
    some = {"a": "error", "b": "fail", "c": "runtime error", "d": "skipped", "e": "success", "f": "warn", "g": "pass"}
    nothing = SimpleNamespace(success=False, exception=None, result=None)
    given = dbt_that_ends(monkeypatch, end(False, **some), end(True, h="success"), nothing)
    out = io.StringIO()
    dbt = DbtRuns("build --select 'tag:a b'", Event(), out)
    found = [(dbt.run(), dbt.totals.runs, dbt.totals.failed_runs, dbt.totals.failed) for _ in range(3)]
    assert found == [(True, 1, 1, ["a", "b", "c"]), (True, 2, 1, []), (True, 3, 2, ["dbt itself"])]
    assert given == [["build", "--select", "tag:a b", "--no-use-colors"]] * 3
    assert (out.getvalue(), capsys.readouterr().out) == ("what dbt says\n" * 3, "")


def test_a_run_of_dbt_that_was_stopped_is_no_failure_of_a_model(monkeypatch):
    dbt_that_ends(monkeypatch, end(False, a="error"), end(True, a="success"))
    stop = Event()
    stop.set()
    dbt = DbtRuns("run", stop, io.StringIO())
    assert (dbt.run(), dbt.totals.failed_runs, dbt.totals.failed) == (False, 0, [])
    assert dbt.run(), "it came to its end before it heard"


def test_a_command_that_dbt_does_not_know_is_refused(monkeypatch):
    class DbtUsageException(Exception):
        pass

    dbt_that_ends(monkeypatch, end(False, DbtUsageException("No such option: --selct")))
    with pytest.raises(UsageError, match=r"--dbt 'run --selct a': No such option: --selct\."):
        DbtRuns("run --selct a", Event(), io.StringIO()).run()


def test_on_a_terminal_dbt_may_use_colours(monkeypatch):
    given = dbt_that_ends(monkeypatch, end(True))
    out = io.StringIO()
    out.isatty = lambda: True
    DbtRuns("run", Event(), out).run()
    assert given == [["run"]]
