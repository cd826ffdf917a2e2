"""A job that is asked to end, from a terminal or by a scheduler, learns of it and goes on to its own end."""

import logging
import os
import signal
from collections.abc import Iterator
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from reconcile_jobs.process.shutdown import Shutdown


@pytest.fixture
def shutdown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shutdown]:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    shutdown, session = Shutdown(), object()
    spark: Any = session  # of which nothing is asked where the job was not started by spark-submit
    shutdown.watch(spark)
    yield shutdown
    logging.disable(logging.NOTSET)
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_end_asks_the_job_to_stop(shutdown: Shutdown, number: signal.Signals):
    assert not shutdown.stop.is_set()
    os.kill(os.getpid(), number)
    assert shutdown.stop.wait(10)


def test_a_signal_that_comes_before_the_session_asks_it_too():
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        early = Shutdown()
        os.kill(os.getpid(), signal.SIGINT)
        assert early.stop.wait(10)
    finally:
        logging.disable(logging.NOTSET)
        for number, handler in kept.items():
            signal.signal(number, handler)


@pytest.mark.parametrize("code", [0, 1, 4])
def test_a_job_ends_with_its_own_exit_code(shutdown: Shutdown, code: int):
    with pytest.raises(SystemExit) as ended:
        shutdown.end(code)
    assert ended.value.code == code


def test_the_end_of_the_jvm_waits_for_that_of_the_job_and_takes_its_exit_code(
    shutdown: Shutdown, monkeypatch: pytest.MonkeyPatch
):
    """Under spark-submit a signal reaches the JVM, which would end with a code of its own."""
    hooks: list[tuple[Any, ...]] = []
    ended: list[str | int] = []
    manager = SimpleNamespace(addShutdownHook=lambda *given: hooks.append(given))
    util = SimpleNamespace(ShutdownHookManager=SimpleNamespace(get=lambda: manager))
    lang = SimpleNamespace(
        System=SimpleNamespace(out=SimpleNamespace(flush=lambda: ended.append("flushed"))),
        Runtime=SimpleNamespace(getRuntime=lambda: SimpleNamespace(halt=ended.append)),
    )
    units = SimpleNamespace(concurrent=SimpleNamespace(TimeUnit=SimpleNamespace(SECONDS="seconds")))
    jvm = SimpleNamespace(
        org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(util=util))),
        java=SimpleNamespace(lang=lang, util=units),
    )
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr("pyspark.java_gateway.ensure_callback_server_started", lambda gateway: None)
    spark: Any = SimpleNamespace(_jvm=jvm, sparkContext=SimpleNamespace(_gateway=None))
    shutdown.watch(spark)
    ((hook, priority, patience, unit),) = hooks
    assert (patience, unit) == (60, "seconds") and priority > 40, "Spark's own hook has 40, and stops the session"
    jvm_ends = Thread(target=hook.run, daemon=True)
    jvm_ends.start()
    assert shutdown.stop.wait(10)
    jvm_ends.join(0.05)
    assert jvm_ends.is_alive(), "the job has not ended yet"
    with pytest.raises(SystemExit):
        shutdown.end(3)
    jvm_ends.join(10)
    assert (jvm_ends.is_alive(), ended) == (False, ["flushed", 3])
