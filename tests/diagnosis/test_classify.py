"""Why an attempt ended: tables of who failed first, and the causes, from the words that torch really prints."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchyard.diagnosis.classify import classify
from torchyard.diagnosis.evidence import Evidence
from torchyard.domain.cause import Cause, Diagnosis
from torchyard.domain.observation import LogLine, LostBecause, Observation, RankSeen, ReplicaSeen, ReplicaState
from torchyard.domain.workload import EndingBecause

T0 = datetime(2026, 1, 1, tzinfo=UTC)
SITE = "/env/lib/python3.12/site-packages"
PEER = (
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer "
    "[127.0.0.1]:13209. This is typically caused by a remote worker crashing."
)
RESET = "RuntimeError: [/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:7595: Connection reset by peer."
NCCL = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:77, remote process exited"


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def said(text: str, rank: int | None = None, start: float = 5.0, kind: str = "e") -> list[LogLine]:
    """Lines of one stream, a millisecond apart."""
    return [
        LogLine(attempt=1, replica="", cursor=n, at=at(start + n / 1000), rank=rank, kind=kind, text=line)
        for n, line in enumerate(text.splitlines())
    ]


def raised(error: str, file: str = "train.py", number: int = 12, function: str = "step", prefix: str = "") -> str:
    """A traceback as Python prints it, through a library."""
    lines = [
        "Traceback (most recent call last):",
        f'  File "/home/ann/exp/{file}", line 40, in <module>',
        "    main()",
        f'  File "/home/ann/exp/{file}", line {number}, in {function}',
        "    loss.backward()",
        "    ^^^^^^^^^^^^^^^",
        f'  File "{SITE}/torch/_tensor.py", line 623, in backward',
        "    torch.autograd.backward(",
        error,
    ]
    return "\n".join(prefix + line for line in lines)


def report(rank: int, exitcode: int, others: Mapping[int, int] | None = None, first: int = 0) -> str:
    """What torchrun 2.13 prints when a rank fails."""
    local = rank - first

    def block(number: int, code: int, index: int) -> list[str]:
        return [
            f"[{index}]:",
            "  time      : 2026-01-01_00:00:05",
            "  host      : localhost",
            f"  rank      : {number} (local_rank: {number - first})",
            f"  exitcode  : {code} (pid: {100 + number}) ",
            "  error_file: <N/A>",
            "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
        ]

    rest = [line for n, (r, code) in enumerate((others or {}).items(), 1) for line in block(r, code, n)]
    return "\n".join(
        [
            "E0101 00:00:05.403000 99 torch/distributed/elastic/multiprocessing/api.py:1002] failed "
            f"(exitcode: {exitcode}) local_rank: {local} (pid: {100 + rank}) of binary: /env/bin/python3",
            "Traceback (most recent call last):",
            '  File "/env/bin/torchrun", line 8, in <module>',
            "    sys.exit(main())",
            f'  File "{SITE}/torch/distributed/launcher/api.py", line 383, in launch_agent',
            "    raise ChildFailedError(",
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
            "=" * 55,
            "train.py FAILED",
            "-" * 55,
            "Failures:",
            *(rest or ["  <NO_OTHER_FAILURES>"]),
            "-" * 55,
            "Root Cause (first observed failure):",
            *block(rank, exitcode, 0),
            "=" * 55,
        ]
    )


def rank(
    number: int,
    ended: float | None = None,
    code: int | None = None,
    signal: int | None = None,
    *,
    launcher: int = 0,
    restart: int = 0,
    started: float = 1.0,
) -> RankSeen:
    return RankSeen(
        rank=number,
        local_rank=number,
        pid=100 + number,
        started_at=at(started),
        ended_at=None if ended is None else at(ended),
        code=code,
        signal=signal,
        launcher=launcher,
        restart=restart,
    )


def replica(
    name: str = "worker-0",
    code: int | None = None,
    ranks: tuple[RankSeen, ...] = (),
    ended: float = 7.0,
    state: ReplicaState = ReplicaState.ENDED,
    launchers: int | None = None,
    signal: int | None = None,
    stopped: bool = False,
    lost: LostBecause | None = None,
    reason: str | None = None,
    message: str | None = None,
    oom_kills: int = 0,
    killed_after_grace: bool = False,
) -> ReplicaSeen:
    return ReplicaSeen(
        name=name,
        state=state,
        started_at=T0,
        ended_at=None if state is ReplicaState.LOST else at(ended),
        code=code,
        ranks=ranks,
        launchers=int(bool(ranks)) if launchers is None else launchers,
        signal=signal,
        stopped=stopped,
        lost=lost,
        reason=reason,
        message=message,
        oom_kills=oom_kills,
        killed_after_grace=killed_after_grace,
    )


def judge(
    *replicas: ReplicaSeen,
    logs: Mapping[str, list[LogLine]] | None = None,
    asked: EndingBecause | None = None,
    nproc: int = 1,
    trust: bool = False,
    port: int | None = None,
    commands: Mapping[str, str] | None = None,
) -> Diagnosis:
    ordered = {name: tuple(sorted(lines, key=lambda line: line.at)) for name, lines in (logs or {}).items()}
    return classify(
        Evidence(
            observation=Observation(at=at(60), replicas=replicas),
            logs=ordered,
            nproc={r.name: nproc for r in replicas},
            asked_to_end=asked,
            trust_exit_code=trust,
            port=port,
            commands=commands or {},
        )
    )


def test_all_exit_0_is_completed() -> None:
    found = judge(replica("master-0", 0, (rank(0, 5, 0),)), replica("worker-0", 0, (rank(1, 5, 0),)))
    assert (found.cause, found.fault, found.suspicious) == (None, None, None)


# Who failed first


def test_the_error_and_the_innermost_frame_of_the_users_own_code_are_told() -> None:
    found = judge(
        replica(code=1, ranks=(rank(0, 5, 1),)),
        logs={"worker-0": said(raised("ValueError: boom", prefix="[rank0]: "), 0) + said(report(0, 1))},
    )
    assert found.cause is Cause.USER
    assert found.fault and (found.fault.rank, found.fault.code) == (0, 1)
    assert (found.fault.exception, found.fault.frame) == ("ValueError: boom", "train.py:12 in step")
    assert found.sentence == "rank 0 (worker-0) failed with ValueError: boom (train.py:12 in step)"
    assert found.fault.last_lines[-1] == "ValueError: boom"


@pytest.mark.parametrize("survivor", [PEER, RESET, NCCL])
@pytest.mark.parametrize("exact", [True, False])
def test_a_survivors_connection_error_is_never_first(survivor: str, exact: bool) -> None:
    """Even where the killed rank was reaped later than the survivor ended."""
    ranks = (rank(0, 5.0, 1), rank(1, 5.1, signal=9)) if exact else (rank(0), rank(1))
    found = judge(
        replica(code=1, ranks=ranks),
        logs={"worker-0": said(raised(survivor), 0) + said(report(1, -9, {0: 1}), start=6)},
        nproc=2,
    )
    assert found.fault and (found.fault.rank, found.fault.signal) == (1, 9)
    assert found.sentence == "rank 1 (worker-0) was killed by SIGKILL (9)"


def test_of_two_replicas_the_rank_that_raised_is_first_though_the_other_replica_ended_first() -> None:
    master = replica("master-0", 1, (rank(0, 5.2, 1),), ended=6.0)
    worker = replica("worker-0", 1, (rank(1, 5.0, 1),), ended=7.5)
    logs = {
        "master-0": said(raised(PEER), 0) + said(report(0, 1), start=5.3),
        "worker-0": said(raised("KeyError: 'x'"), 1) + said(report(1, 1, first=1), start=7),
    }
    for observed in ((master, worker), (worker, master)):
        found = judge(*observed, logs=logs)
        assert found.fault and (found.fault.replica, found.fault.rank) == ("worker-0", 1)
        assert found.fault.exception == "KeyError: 'x'"


def test_a_replica_that_we_stopped_for_anothers_fault_is_not_the_fault() -> None:
    """Its torchrun died by our SIGTERM, its rank by our SIGKILL, and both are recorded as failed."""
    master = replica("master-0", 1, (rank(0, 6.4, signal=9),), ended=6.5, stopped=True)
    worker = replica("worker-0", 3, (rank(1, 5.0, 3),), ended=5.5)
    term = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 9 got signal: 15"
    found = judge(master, worker, logs={"master-0": said(raised(term), start=6.3)}, asked=EndingBecause.FAULT)
    assert found.fault and (found.fault.replica, found.fault.rank, found.fault.code) == ("worker-0", 1, 3)


def test_a_stopped_replica_whose_rank_failed_before_we_could_have_asked_is_the_fault() -> None:
    """Its torchrun was slower to end than that of the survivor."""
    master = replica("master-0", 1, (rank(0, 5.4, 1),), ended=5.8)
    worker = replica("worker-0", None, (rank(1, 5.0, signal=11),), ended=6.9, stopped=True, signal=9)
    found = judge(master, worker, logs={"master-0": said(raised(PEER), 0)}, asked=EndingBecause.FAULT)
    assert found.fault and (found.fault.replica, found.fault.rank, found.fault.signal) == ("worker-0", 1, 11)


def test_node_0_that_carries_on_and_exits_0_does_not_hide_the_failure_of_node_1() -> None:
    master = replica("master-0", 0, (rank(0, 310, 0),), ended=311)
    worker = replica("worker-0", 1, (rank(1, 4.0, 1),), ended=4.5)
    found = judge(
        master, worker, logs={"worker-0": said("rank=1 local phase 3", 1, kind="o") + said(report(1, 1, first=1))}
    )
    assert found.cause is Cause.USER
    assert found.fault and (found.fault.replica, found.fault.rank, found.fault.code) == ("worker-0", 1, 1)
    assert found.sentence == "rank 1 (worker-0) ended with exit 1"


@pytest.mark.parametrize("others", [{0: -15}, {0: -15, 2: 1}])
def test_without_exact_ends_the_report_of_torchrun_says_who_was_first(others: dict[int, int]) -> None:
    found = judge(
        replica(code=1, launchers=1),
        logs={"worker-0": said(raised("IndexError: 7"), 2) + said(report(1, -6, others))},
        nproc=3,
    )
    assert found.fault and (found.fault.rank, found.fault.signal) == (1, 6)


def test_a_rank_that_ended_before_anybody_saw_it_is_known_from_torchrun() -> None:
    lines = said(raised("ImportError: x"), 1) + said(report(1, 1, {0: -15}))
    for code, cause in ((1, Cause.USER), (0, Cause.MASKED_EXIT)):
        found = judge(replica(code=code, ranks=(rank(0, 5.5, signal=15),)), logs={"worker-0": lines}, nproc=2)
        assert (found.cause, found.fault and found.fault.exception) == (cause, "ImportError: x")


def test_of_equal_errors_the_earliest_counts() -> None:
    found = judge(
        replica(code=1, ranks=(rank(0, 5.02, 1), rank(1, 5.01, 1))),
        logs={"worker-0": said(raised("ValueError: 0"), 0) + said(raised("ValueError: 1"), 1)},
        nproc=2,
    )
    assert found.fault and found.fault.exception == "ValueError: 1"


def test_only_the_last_generation_counts() -> None:
    """torchrun --max-restarts: the first generation failed otherwise."""
    ranks = (
        rank(0, 3, 1),
        rank(1, 2, signal=9),
        rank(0, 8, 7, restart=1, started=4),
        rank(1, 9, signal=15, restart=1, started=4),
    )
    found = judge(replica(code=1, ranks=ranks, ended=10), nproc=2)
    assert found.fault and (found.fault.rank, found.fault.code) == (0, 7)


def test_a_c10d_abort_names_what_was_thrown() -> None:
    thrown = (
        "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n"
        "  what():  [enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 12 vs 4. "
    )
    found = judge(
        replica(code=1, ranks=(rank(0, 5.1, signal=6), rank(1, 5.0, 1))),
        logs={"worker-0": said(thrown, 0) + said(raised(RESET), 1)},
        nproc=2,
    )
    assert found.fault and found.fault.rank == 0
    assert found.fault.exception and found.fault.exception.startswith("gloo::EnforceNotMet: [enforce fail")


def test_a_destructor_error_is_not_the_error() -> None:
    ignored = "Exception ignored in: <function X.__del__ at 0x7f>\n" + raised("AttributeError: gone")
    lines = said(raised("ValueError: boom") + "\n" + ignored, 0)
    found = judge(replica(code=1, ranks=(rank(0, 5, 1),)), logs={"worker-0": lines})
    assert found.fault and found.fault.exception == "ValueError: boom"


def test_a_traceback_behind_a_progress_bar_is_found() -> None:
    text = "  0%|          | 0/10 [00:00<?, ?it/s]" + raised("ValueError: boom")
    found = judge(replica(code=1), logs={"worker-0": said(text)})
    assert found.fault and (found.fault.exception, found.fault.frame) == ("ValueError: boom", "train.py:12 in step")


# Commands that were killed


def test_torchrun_killed_under_a_script_is_named() -> None:
    line = "run.sh: line 2: 22643 Killed                  torchrun --nproc-per-node 2 train.py"
    ranks = (rank(0, 6.2, signal=9), rank(1, 6.2, signal=15))
    found = judge(replica(code=137, ranks=ranks), logs={"worker-0": said(line)}, nproc=2)
    assert found.cause is Cause.USER
    assert found.sentence == "`torchrun --nproc-per-node 2 train.py` of worker-0 was killed by SIGKILL (9)"
    assert found.fault and (found.fault.rank, found.fault.signal) == (None, 9)


def test_bash_killed_over_its_ranks_is_named() -> None:
    ranks = (rank(0, 6.2, signal=15), rank(1, 6.2, signal=15))
    logs = {"worker-0": said("step 1", 0)}
    found = judge(replica(signal=9, ranks=ranks), logs=logs, nproc=2, commands={"worker-0": "bash run.sh"})
    assert found.sentence == "`bash run.sh` of worker-0 was killed by SIGKILL (9)"


def test_torchrun_ended_by_somebodys_sigterm_is_named() -> None:
    text = (
        "W0101 00:00:05.9 99 torch/distributed/elastic/agent/server/api.py:753] Received 15 death signal\n"
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 99 got signal: 15"
    )
    found = judge(replica(code=1, ranks=(rank(0, 6, 1),)), logs={"worker-0": said(text)})
    assert found.sentence == "`torchrun` of worker-0 was killed by SIGTERM (15)"


def test_a_rank_killed_under_a_script_is_not_taken_for_the_script() -> None:
    ranks = (rank(0, 5.2, signal=15), rank(1, 5.0, signal=9))
    found = judge(replica(code=1, ranks=ranks), logs={"worker-0": said(report(1, -9, {0: -15}))}, nproc=2)
    assert found.fault and (found.fault.rank, found.fault.signal) == (1, 9)


def test_an_empty_log_and_exit_137_do_not_mean_that_nothing_ran() -> None:
    found = judge(replica(code=137))
    assert found.cause is Cause.USER
    assert "killed by SIGKILL (9)" in found.sentence and "its log is empty" in found.sentence
    assert "nothing" not in found.sentence


def test_what_a_killed_rank_had_printed_is_kept() -> None:
    lines = said("\n".join(f"step={n} loss={3 / (n + 1):.3f}" for n in range(30)), kind="o")
    found = judge(replica(signal=9), logs={"worker-0": lines})
    assert found.fault and found.fault.last_lines[-1] == "step=29 loss=0.100" and len(found.fault.last_lines) == 20
    assert "empty" not in found.sentence and found.step == 29


# Causes


@pytest.mark.parametrize(
    ("lost", "cause"),
    [
        (LostBecause.SUPERVISOR, Cause.SUPERVISOR_LOST),
        (LostBecause.KEEPER, Cause.SUPERVISOR_LOST),
        (LostBecause.REBOOT, Cause.REBOOT),
        (LostBecause.NODE, Cause.NODE_LOST),
        (LostBecause.REMOVED, Cause.SUPERVISOR_LOST),
        (None, Cause.SUPERVISOR_LOST),
    ],
)
def test_lost_replicas(lost: LostBecause | None, cause: Cause) -> None:
    """The survivors of the lost one end with errors that are not the cause."""
    gone = replica("worker-0", state=ReplicaState.LOST, lost=lost)
    left = replica("master-0", 1, (rank(0, 5, 1),))
    found = judge(left, gone, logs={"master-0": said(raised(PEER), 0)})
    assert (found.cause, found.fault.replica if found.fault else None) == (cause, "worker-0")


def test_keeper_lost_by_its_exit_record() -> None:
    found = judge(replica(code=None, reason="keeperLost"))
    assert found.cause is Cause.SUPERVISOR_LOST and "keeper of worker-0" in found.sentence


def test_nothing_known_any_more() -> None:
    assert judge().cause is Cause.SUPERVISOR_LOST


def test_what_could_not_start_is_told_with_its_message() -> None:
    found = judge(replica(reason="start", message="bwrap: Can't mkdir /data: Read-only file system\n"))
    assert found.cause is Cause.START
    assert found.sentence == "worker-0 could not start: bwrap: Can't mkdir /data: Read-only file system"


def test_what_could_not_start_is_told_in_one_line() -> None:
    said = (
        "Unable to find image 'x:1' locally\ndocker: Error response from daemon: refused.\n\nRun 'docker run --help'\n"
    )
    assert judge(replica(reason="start", message=said)).sentence == (
        "worker-0 could not start: docker: Error response from daemon: refused."
    )


def test_out_of_memory_needs_a_kill_and_the_kernels_word() -> None:
    killed = (rank(0, 5, signal=9),)
    assert judge(replica(code=1, ranks=killed, oom_kills=1)).cause is Cause.OOM
    assert judge(replica(code=137, oom_kills=1)).cause is Cause.OOM
    assert judge(replica(code=1, ranks=killed)).cause is Cause.USER
    raising = {"worker-0": said(raised("ValueError: boom"), 0)}
    assert judge(replica(code=1, ranks=(rank(0, 5, 1),), oom_kills=1), logs=raising).cause is Cause.USER


ADDRESS = (
    "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. "
    "port: {}, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"
)


@pytest.mark.parametrize(
    ("port", "rank_of_line", "cause"),
    [(29877, None, Cause.PORT_TAKEN), (29877, 0, Cause.PORT_TAKEN), (8080, None, Cause.USER), (29877, 1, Cause.USER)],
)
def test_only_our_own_port_as_told_by_launcher_or_rank_0(port: int, rank_of_line: int | None, cause: Cause) -> None:
    lines = said(raised(ADDRESS.format(port)), rank_of_line)
    ranks = () if rank_of_line is None else (rank(rank_of_line, 5, 1),)
    found = judge(replica(code=1, ranks=ranks, launchers=1), logs={"worker-0": lines}, port=29877)
    assert (found.cause, found.signature) == (cause, "portTaken")


def test_a_warning_about_the_port_before_another_error_is_not_the_cause() -> None:
    warning = "[c10d] The server socket has failed to bind to [::]:29877 (errno: 98 - Address already in use)."
    lines = said(warning, 0) + said(raised("ValueError: boom"), 0)
    found = judge(replica(code=1, ranks=(rank(0, 5, 1),)), logs={"worker-0": lines}, port=29877)
    assert found.cause is Cause.USER


@pytest.mark.parametrize(
    ("asked", "cause"),
    [
        (EndingBecause.STOP, Cause.STOPPED),
        (EndingBecause.DEADLINE, Cause.DEADLINE),
        (EndingBecause.PENDING_DEADLINE, Cause.START),
        (EndingBecause.WITHDRAWN, Cause.STOPPED),
    ],
)
def test_asked_to_end(asked: EndingBecause, cause: Cause) -> None:
    assert judge(replica(code=1, stopped=True, ranks=(rank(0, 5, signal=15),)), asked=asked).cause is cause
    assert judge(replica(code=0, stopped=True), asked=asked).cause is cause


def test_what_had_completed_before_the_stop_reached_it_is_completed() -> None:
    assert judge(replica(code=0), asked=EndingBecause.STOP).cause is None


def test_the_impatience_of_torchrun_is_told_when_a_stop_loses_the_last_save() -> None:
    line = (
        "W0101 00:00:35.976 99 torch/distributed/elastic/multiprocessing/api.py:1047] "
        "Unable to shutdown process 23475 via 15, forcefully exiting via 9"
    )
    found = judge(replica(code=1, stopped=True), logs={"worker-0": said(line)}, asked=EndingBecause.STOP)
    assert (found.cause, found.signature) == (Cause.STOPPED, "shutdownTimeout")
    assert found.hint and "terminationGracePeriodSeconds" in found.hint


# Masked exits


def test_exit_0_after_a_failed_torchrun_is_masked() -> None:
    found = judge(
        replica(code=0, ranks=(rank(0, 5.1, signal=15), rank(1, 5, signal=9))),
        logs={"worker-0": said(report(1, -9, {0: -15})) + said("copied", start=6, kind="o")},
        nproc=2,
    )
    assert found.cause is Cause.MASKED_EXIT
    assert found.fault and (found.fault.rank, found.fault.signal) == (1, 9)
    assert found.sentence.startswith("worker-0 ended with exit 0, but its last torchrun had failed: rank 1 (worker-0)")


def test_the_report_alone_is_enough_and_says_who() -> None:
    found = judge(replica(code=0, launchers=1), logs={"worker-0": said(report(1, 1))}, nproc=2)
    assert found.cause is Cause.MASKED_EXIT
    assert found.fault and (found.fault.rank, found.fault.code) == (1, 1)


def test_a_masked_replica_beside_a_failed_one_is_where_it_began() -> None:
    master = replica("master-0", 1, (rank(0, 5.3, 1),), ended=6)
    worker = replica("worker-0", 0, (rank(1, 5.0, signal=9),), ended=6)
    found = judge(master, worker, logs={"master-0": said(raised(PEER), 0), "worker-0": said(report(1, -9, first=1))})
    assert found.cause is Cause.USER and found.fault and found.fault.rank == 1


def test_a_script_that_starts_torchrun_again_and_succeeds_is_completed() -> None:
    ranks = (rank(0, 5, 1), rank(0, 20, 0, launcher=1, started=10))
    found = judge(replica(code=0, ranks=ranks, launchers=2), logs={"worker-0": said(report(0, 1))})
    assert found.cause is None


def test_a_ranks_own_output_never_masks() -> None:
    found = judge(replica(code=0, ranks=(rank(0, 9, 0),)), logs={"worker-0": said(report(0, 1), 0)})
    assert found.cause is None


def test_a_program_without_torchrun_that_prints_a_report_is_not_masked() -> None:
    found = judge(
        replica(code=0, launchers=0), logs={"worker-0": said(report(0, 1) + "\nbye\nbye\nbye\nbye\nbye\nbye")}
    )
    assert found.cause is None


def test_an_old_report_that_is_shown_after_good_ranks_is_not_masked() -> None:
    found = judge(replica(code=0, ranks=(rank(0, 4, 0),)), logs={"worker-0": said(report(0, 1), start=6)})
    assert found.cause is None


def test_trust_exit_code_turns_the_rule_off() -> None:
    masked = replica(code=0, ranks=(rank(0, 5, signal=9),))
    assert judge(masked).cause is Cause.MASKED_EXIT
    found = judge(masked, logs={"worker-0": said(report(0, -9))}, trust=True)
    assert (found.cause, found.suspicious) == (None, None)


@pytest.mark.parametrize("last", ["", "Copying log files", "JOB_DONE"])
def test_a_success_whose_last_words_are_an_error_is_suspicious(last: str) -> None:
    lines = said(f"step 12 loss nan\nRuntimeError: loss is not finite\n{last}", kind="o")
    found = judge(replica(code=0), logs={"worker-0": lines})
    assert found.cause is None
    assert found.suspicious and "RuntimeError: loss is not finite" in found.suspicious


@pytest.mark.parametrize(
    "text",
    [
        "step 12 loss 0.1\ndone",
        raised("ValueError: once") + "\n" + "\n".join(f"step {n}" for n in range(6)),
        "Exception ignored in: <function X.__del__ at 0x7f>\n" + raised("AttributeError: gone"),
        "0 errors, no Error: fine",
        "",
    ],
)
def test_a_success_that_is_not_suspicious(text: str) -> None:
    assert judge(replica(code=0), logs={"worker-0": said(text)}).suspicious is None


# Nothing that a log may hold can break it

_TEXT = st.one_of(
    st.text(max_size=60),
    st.sampled_from(report(1, -9, {0: 1}).splitlines() + raised(PEER).splitlines()),
    st.sampled_from(["Exception ignored in: x", "terminate called after throwing an instance of 'x'", "  what():  y"]),
)
_LINE = st.builds(
    LogLine,
    attempt=st.just(1),
    replica=st.just("worker-0"),
    cursor=st.just(0),
    at=st.integers(0, 20).map(at),
    rank=st.sampled_from([None, 0, 1]),
    kind=st.sampled_from(["o", "e", "er", "oc", "ec", "t", ""]),
    text=_TEXT,
)
_CODE = st.sampled_from([None, 0, 1, 127, 137])
_RANK = st.builds(
    rank,
    st.sampled_from([0, 1]),
    st.none() | st.floats(1, 20),
    _CODE,
    st.sampled_from([None, None, 9, 15]),
    launcher=st.integers(0, 1),
)
_REPLICA = st.builds(
    replica,
    st.sampled_from(["master-0", "worker-0"]),
    _CODE,
    st.lists(_RANK, max_size=3).map(tuple),
    state=st.sampled_from([ReplicaState.ENDED, ReplicaState.ENDED, ReplicaState.LOST]),
    signal=st.sampled_from([None, None, 9]),
    stopped=st.booleans(),
    reason=st.sampled_from([None, None, "start", "keeperLost"]),
    oom_kills=st.integers(0, 1),
)


@settings(max_examples=200)
@given(
    st.lists(_REPLICA, max_size=2),
    st.lists(_LINE, max_size=25),
    st.none() | st.sampled_from(EndingBecause),
    st.booleans(),
)
def test_it_always_has_an_answer(
    replicas: list[ReplicaSeen], lines: list[LogLine], asked: EndingBecause | None, trust: bool
) -> None:
    found = judge(*replicas, logs={"worker-0": lines}, asked=asked, trust=trust, port=29500)
    assert found.sentence
    well = bool(replicas) and all(r.code == 0 and not r.failed and not r.stopped for r in replicas)
    if found.cause is None:
        assert well
    if well and trust:
        assert found.cause is None
