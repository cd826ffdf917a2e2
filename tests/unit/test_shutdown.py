"""A job that is asked to end, from a terminal or by a scheduler, learns of it and goes on to its own end."""

import logging
import os
import signal
from collections.abc import Iterator
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
