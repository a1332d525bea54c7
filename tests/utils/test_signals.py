"""A signal waits for the next safe point; a second one does not."""

import os
import signal
import threading
import time

import pytest

from bangs.utils.signals import Stopped, check, graceful

NUMBERS = [signal.SIGINT, signal.SIGTERM]


def send(number: int) -> None:
    os.kill(os.getpid(), number)


class Work:
    """Steps between which a signal is sent; what was done is remembered."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def __call__(self, *steps: str | signal.Signals) -> None:
        with graceful():
            for step in steps:
                if isinstance(step, signal.Signals):
                    send(step)
                elif step == "check":
                    check()
                elif step == "fail":
                    raise RuntimeError("the round failed")
                else:
                    self.done.append(step)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_waits_for_the_next_safe_point(number: signal.Signals) -> None:
    work = Work()
    with pytest.raises(Stopped) as stopped:
        work("check", number, "write", "check", "more")
    assert work.done == ["write"]
    assert stopped.value.signal == number
    assert stopped.value.exit_code == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]


def test_a_second_signal_raises_at_once() -> None:
    work = Work()
    with pytest.raises(Stopped) as stopped:
        work(signal.SIGINT, "write", signal.SIGTERM, "more")
    assert work.done == ["write"]
    assert stopped.value.exit_code == 143


def test_a_signal_after_the_last_safe_point_is_not_lost() -> None:
    work = Work()
    with pytest.raises(Stopped):
        work(signal.SIGINT, "all")
    assert work.done == ["all"]


def test_a_signal_outlives_an_error_of_the_round() -> None:
    with pytest.raises(Stopped) as stopped:
        Work()(signal.SIGTERM, "fail")
    assert isinstance(stopped.value.__context__, RuntimeError)


def test_it_is_raised_once_so_that_cleaning_up_may_pass_safe_points() -> None:
    with graceful():
        send(signal.SIGINT)
        with pytest.raises(Stopped):
            check()
        check()


def test_an_except_exception_does_not_swallow_it() -> None:
    assert not issubclass(Stopped, Exception)
    assert issubclass(Stopped, KeyboardInterrupt)


def test_handlers_come_back_and_nesting_changes_nothing() -> None:
    former = [signal.getsignal(number) for number in NUMBERS]
    with graceful():
        Work()(signal.SIGINT)  # ends without raising: the outer block is in charge
        with pytest.raises(Stopped):
            check()
    assert [signal.getsignal(number) for number in NUMBERS] == former
    check()


def test_an_ignored_signal_stays_ignored() -> None:
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with graceful():
            send(signal.SIGINT)
            check()
    finally:
        signal.signal(signal.SIGINT, former)


def test_in_a_thread_it_changes_nothing() -> None:
    recorded = []

    def work() -> None:
        with graceful():
            recorded.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert recorded == [before]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_process_can_end_with_the_code_a_shell_expects(number: signal.Signals, code: int) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with graceful():
                os.write(writer, b"x")
                while True:
                    time.sleep(0.01)
                    check()
        except Stopped as stopped:
            status = stopped.exit_code
        finally:
            os._exit(status)
    os.read(reader, 1)
    os.kill(child, number)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code
    os.close(reader)
    os.close(writer)
