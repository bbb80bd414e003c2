"""Progress read from logs: tables of what scripts print, and what must not be taken for progress."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from torchyard.diagnosis.progress import Reader
from torchyard.domain.observation import LogLine
from torchyard.domain.workload import Progress

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def line(text: str, seconds: float = 0.0, rank: int | None = None, kind: str = "o") -> LogLine:
    when = T0 + timedelta(seconds=seconds)
    return LogLine(attempt=1, replica="worker-0", cursor=0, at=when, rank=rank, kind=kind, text=text)


def after(*texts: str, total: int | None = None, pattern: str | None = None, every: float = 1.0) -> Progress | None:
    reader = Reader(total, pattern)
    for number, text in enumerate(texts):
        reader.read(line(text, number * every))
    return reader.progress(1, T0 + timedelta(days=1))


def shown(progress: Progress | None) -> tuple[object, ...] | None:
    return None if progress is None else (progress.unit, progress.step, progress.total, progress.loss)


BAR = " 45%|####      | 450/1000 [00:12<00:15, 35.2it/s, loss=0.3]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Epoch 12/100", ("epoch", 12, 100, None)),
        ("[GPU0] Epoch 12 | Batchsize: 32 | Steps: 10", ("epoch", 12, None, None)),
        ("epoch: 3", ("epoch", 3, None, None)),
        ("Epoch 3 of 10, train loss 0.5, val loss 0.7", ("epoch", 3, 10, 0.5)),
        ("Epoch [3/10], Step [100/600], Loss: 0.2345", ("epoch", 3, 10, 0.2345)),
        ("Epoch: [0][  10/5005]\tTime  0.3 ( 0.4)\tLoss 6.9e+00 (7.0)", ("epoch", 0, None, 6.9)),
        ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 0.234", ("epoch", 1, None, 0.234)),
        ("step 120/1000", ("step", 120, 1000, None)),
        ("step=27 loss=0.107", ("step", 27, None, 0.107)),
        ("Step 1,000/5,000 loss 2.3", ("step", 1000, 5000, 2.3)),
        ("iter 500: loss 3.2012, time 20.11ms, mfu 1.22%", ("step", 500, None, 3.2012)),
        (" iteration      100/  500000 | lm loss: 1.047E+01 | loss scale: 1.0 |", ("step", 100, 500000, 10.47)),
        (BAR, ("step", 450, 1000, 0.3)),
        ("450it [00:12, 35.2it/s]", ("step", 450, None, None)),
        ("Epochs:  10%|#         | 1/10 [00:12<00:15, 1.2it/s]", ("epoch", 1, 10, None)),
        ("Epoch 3:  45%|███▌     | 45/100 [00:01<00:02, 30it/s, v_num=0, train_loss=0.512]", ("epoch", 3, None, 0.512)),
        ("{'loss': 0.1, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 2.5}", ("epoch", 2, None, 0.1)),
        ("step 3 loss nan", ("step", 3, None, None)),
    ],
)
def test_what_scripts_print(text: str, expected: tuple[object, ...]) -> None:
    assert shown(after(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Downloading 45/100",
        "Downloading model.safetensors:  45%|####      | 45/100 [00:12<00:15, 35.2it/s]",
        " 45%|####      | 45.2M/100M [00:12<00:15, 3.2MB/s]",
        " 45%|####      | 4520/10000 [00:12<00:15, 3.2kB/s]",
        "Validation DataLoader 0:  45%|####      | 45/100 [00:12<00:15, 35.2it/s]",
        "num_epochs: 100",
        "epochs: 100",
        "steps per epoch: 100",
        "save every epoch 5",
        "max step: 100",
        "Namespace(epoch=100, lr=0.1)",
        "validation step 3/10 val loss 0.3",
        "epoch 3% done",
        "Epoch 12/3",
        "rank=1 local phase 3",
        "",
    ],
)
def test_what_is_no_progress(text: str) -> None:
    assert after(text) is None


def test_epochs_win_over_steps_and_steps_over_bars() -> None:
    assert shown(after(BAR, "step 7/20", BAR)) == ("step", 7, 20, 0.3)
    assert shown(after("step 7/20", "Epoch 2/5", "step 8/20", BAR)) == ("epoch", 2, 5, 0.3)
    assert shown(after("{'loss': 0.1, 'epoch': 2.5}", BAR, "{'loss': 0.2, 'epoch': 2.7}")) == ("step", 450, 1000, 0.2)


def test_a_small_bar_inside_a_large_one_is_left_out_and_a_finished_one_makes_room() -> None:
    small = "100%|##########| 13/13 [00:00<00:00, 35.2it/s]"
    assert shown(after(BAR, small)) == ("step", 450, 1000, 0.3)
    assert shown(after(small, BAR)) == ("step", 450, 1000, 0.3)
    assert shown(after("100%|##| 2000/2000 [00:00<00:00, 9it/s]", small)) == ("step", 13, 13, None)


def test_a_total_that_was_passed_was_none() -> None:
    assert shown(after("epoch 3/10", "epoch 11")) == ("epoch", 11, None, None)


def test_the_users_total_and_pattern_are_obeyed() -> None:
    assert shown(after("Epoch 12", total=100)) == ("epoch", 12, 100, None)
    assert shown(after("Epoch 120", total=100)) == ("epoch", 100, 100, None)
    pattern = r"round (?P<step>\d+) von (?P<total>\d+) err (?P<loss>\S+)"
    assert shown(after("Epoch 12", "round 3 von 8 err 0.5", pattern=pattern)) == ("step", 3, 8, 0.5)
    assert shown(after("at 12 now", pattern=r"at (\d+)")) == ("step", 12, None, None)
    assert after("Epoch 12", pattern=r"round (?P<step>\d+)") is None
    assert shown(after("round x err y", pattern=r"round (?P<step>\w+) err (?P<loss>\w+)")) is None


def test_a_pattern_that_is_none_is_left_out() -> None:
    assert shown(after("Epoch 12", pattern="(")) == ("epoch", 12, None, None)


def test_eta_from_the_pace_of_late() -> None:
    slow_then_quick = [f"step {n}/100" for n in range(1, 61)]
    reader = Reader()
    for number, text in enumerate(slow_then_quick):
        reader.read(line(text, number * 10 if number < 30 else 300 + number))
    found = reader.progress(1, T0 + timedelta(days=1))
    assert found and found.eta == 40.0


def test_no_eta_from_less_than_two_advances_or_without_a_total() -> None:
    one = after("step 1/10", "step 2/10")
    assert one and one.eta is None
    same = after("step 1/10", "step 1/10", "step 1/10")
    assert same and same.eta is None
    two = after("step 1/10", "step 2/10", "step 3/10")
    assert two and two.eta == 7.0
    unbounded = after("step 1", "step 2", "step 3")
    assert unbounded and unbounded.eta is None


def test_a_number_that_no_training_counts_to_is_no_step() -> None:
    huge = "9" * 400
    assert after(f"step {huge}") is None
    found = after("step 1/10", f"step {huge}/{huge}", "step 2/10", "step 3/10")
    assert found and (found.step, found.total) == (3, 10)


def test_the_lowest_rank_is_followed_and_the_launcher_only_before_it() -> None:
    reader = Reader()
    reader.read(line("100%|##| 9/9 [00:00<00:00, 9it/s]"))
    reader.read(line("step 41/100", 1, rank=1))
    assert shown(reader.progress(1, T0)) == ("step", 41, 100, None) and reader.first_step == 41
    reader.read(line("step 40/100", 2, rank=0))
    reader.read(line("step 45/100", 3, rank=1))
    reader.read(line("step 99/100", 3))
    assert shown(reader.progress(1, T0)) == ("step", 40, 100, None)
    assert reader.first_step == 41


def test_first_and_furthest_step() -> None:
    reader = Reader()
    for number, text in enumerate(["Resuming from snapshot at Epoch 40", "Epoch 41", "Epoch 0"]):
        reader.read(line(text, number))
    assert (reader.first_step, reader.furthest) == (40, 41)
    assert shown(reader.progress(1, T0)) == ("epoch", 0, None, None)


def test_marks_of_torchyard_are_not_read() -> None:
    reader = Reader()
    reader.read(line("step 3 lines were lost", kind="t"))
    assert reader.progress(1, T0) is None


def test_a_time_ahead_of_the_clock_is_brought_back() -> None:
    reader = Reader()
    reader.read(line("step 3", seconds=3600))
    found = reader.progress(2, T0)
    assert found and (found.at, found.attempt) == (T0, 2)


_PIECES = st.sampled_from(
    [
        "epoch",
        "Epoch ",
        "step",
        "iter ",
        "loss",
        "=",
        ":",
        " ",
        "[",
        "]",
        "/",
        "of",
        "%|",
        "|",
        "it [",
        "it/s",
        "'",
        "nan",
        "1e9",
    ]
)
_WORDS = st.lists(st.one_of(_PIECES, st.integers(0, 10**20).map(str), st.text(max_size=4)), max_size=14).map("".join)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(_WORDS, st.sampled_from([None, 0, 1]), st.floats(-10, 1e6)), max_size=12),
    st.none() | st.integers(1, 50),
    st.none() | st.just(r"(?P<step>\S+)/(?P<total>\S*) ?(?P<loss>\S*)") | st.text(max_size=8),
)
@example([("epoch 9999999999999999", None, 0.0)], 5, None)
def test_it_never_raises_and_never_goes_beyond_the_total(
    lines: list[tuple[str, int | None, float]], total: int | None, pattern: str | None
) -> None:
    reader = Reader(total, pattern)
    for text, rank, seconds in lines:
        reader.read(line(text, seconds, rank))
        found = reader.progress(1, T0)
        if found is not None and found.total is not None:
            assert found.step is not None and 0 <= found.step <= found.total
            assert found.eta is None or found.eta >= 0


@settings(max_examples=200)
@given(st.integers(1, 10**9), st.integers(0, 10**9), st.sampled_from(["Epoch {}/{}", "step {} of {}", "iter: {}/{}"]))
def test_it_finds_what_is_there(total: int, step: int, shape: str) -> None:
    step = step % (total + 1)
    found = after(shape.format(step, total))
    assert found and (found.step, found.total) == (step, total)
