"""The limit of BLAS threads: what holds while somebody wants it, and afterwards."""

import threading
from collections.abc import Iterator

import pytest

from tlstd.core import threads
from tlstd.core.threads import one_thread


@pytest.fixture
def two_threads() -> Iterator[None]:
    """BLAS with two threads, as on a machine of its own."""
    with threads._controller().limit(limits=2):
        yield


def n_threads() -> set[int]:
    return {library["num_threads"] for library in threads._controller().info()}


@pytest.mark.usefixtures("two_threads")
def test_one_thread_until_the_last_has_left() -> None:
    first, second = one_thread(), one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert n_threads() == {1}
    second.__exit__(None, None, None)
    assert n_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_the_last_to_leave_may_be_another_thread() -> None:
    """And the first one, which has asked for one BLAS thread, may live on."""
    first_is_in, first_may_leave, first_has_left, first_may_end = (threading.Event() for _ in range(4))

    def enter_first_and_leave_first() -> None:
        with one_thread():
            first_is_in.set()
            first_may_leave.wait(60)
        first_has_left.set()
        first_may_end.wait(60)

    first = threading.Thread(target=enter_first_and_leave_first)
    first.start()
    assert first_is_in.wait(60)
    with one_thread():
        first_may_leave.set()
        assert first_has_left.wait(60)
        assert n_threads() == {1}
    found = n_threads()
    first_may_end.set()
    first.join()
    assert found == {2}


def test_where_blas_has_one_thread_nothing_is_set() -> None:
    """And what somebody else sets meanwhile stays."""
    controller = threads._controller()
    with controller.limit(limits=1):
        context = one_thread()
        context.__enter__()
        threads._set([(library, 2) for library in controller.lib_controllers])
        context.__exit__(None, None, None)
        assert n_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_a_lock_that_was_left_behind_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process forked while another thread held it has a lock that nobody will release."""
    monkeypatch.setattr(threads, "_PATIENCE", 0.01)
    threads._OneThread.lock.acquire()
    with one_thread():
        assert n_threads() == {1}
    assert n_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_who_has_to_wait_a_little_waits() -> None:
    lock = threads._OneThread.lock
    lock.acquire()
    timer = threading.Timer(0.02, lock.release)
    timer.start()
    with one_thread():
        assert n_threads() == {1}
    timer.join()
    assert threads._OneThread.lock is lock
