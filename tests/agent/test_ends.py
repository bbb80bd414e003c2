"""How a command ends is what the exit record says."""

import shlex
import signal
from collections.abc import Callable

import pytest
from tests.agent.replicas import PYTHON, Replica, eventually

Script = Callable[[str], list[str]]


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_code_is_the_commands(replica: Replica, code: int) -> None:
    record = replica.run(["sh", "-c", f"echo out; echo err >&2; exit {code}"])
    assert (record["code"], record["signal"], record["reason"], record["stopped"]) == (code, None, None, False)
    assert record["left_behind"] == record["ranks"] == record["launchers"] == []
    assert record["command_ended_at"] <= record["at"]
    assert (replica.said(), replica.said(kind="e")) == (["out"], ["err"])
    assert not (replica.path / "ranks").exists()
    assert not (replica.path / "run" / "keeper.sock").exists()


def test_a_signal_is_told_from_a_code(replica: Replica) -> None:
    record = replica.run(["sh", "-c", "kill -ABRT $$"])
    assert (record["code"], record["signal"]) == (None, signal.SIGABRT)


@pytest.mark.parametrize(
    ("argv", "fields", "code", "words"),
    [
        (["no-such-program"], {}, 127, "no-such-program"),
        (["/etc/passwd"], {}, 126, "Permission denied"),
        (["true"], {"cwd": "/no/such/folder"}, 126, "/no/such/folder"),
    ],
)
def test_what_cannot_start_ends_as_in_a_shell(
    replica: Replica, argv: list[str], fields: dict[str, str], code: int, words: str
) -> None:
    record = replica.run(argv, **fields)
    assert (record["code"], record["reason"]) == (code, None)
    assert words in replica.said(kind="e")[0]


def test_the_command_has_a_session_of_its_own_and_no_terminal_no_input_no_foreign_files(
    replica: Replica, script: Script
) -> None:
    argv = script(
        "import os, signal, sys\n"
        "print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()), sorted(os.listdir('/proc/self/fd')))\n"
        "print(signal.getsignal(signal.SIGPIPE) is not None, signal.pthread_sigmask(signal.SIG_BLOCK, ()))\n"
    )
    replica.run(argv)
    # The fourth file is the folder that is being listed.
    assert replica.said() == ["True '' ['0', '1', '2', '3']", "True set()"]


@pytest.mark.parametrize("keep", [True, False])
def test_an_images_environment_is_kept_where_asked(replica: Replica, keep: bool) -> None:
    code = replica.code("keeper", replica.path / "run")
    wrapper = ["env", "OF_THE_IMAGE=yes", "FRUIT=apple", *PYTHON, "-c", code]
    argv = ["sh", "-c", "echo ${OF_THE_IMAGE-no} $FRUIT"]
    replica.run(argv, {"FRUIT": "fig"}, keeper_argv=wrapper, keep_env=keep)
    assert replica.said() == ["yes fig" if keep else "no fig"]


def test_secrets_reach_the_command_and_nothing_else(replica: Replica, script: Script) -> None:
    replica.prepare(script("import os; print(len(os.environ['API_TOKEN']))"))
    replica.start(secrets={"API_TOKEN": "very-secret-value"})
    replica.wait()
    assert replica.said() == ["17"]
    for path in replica.attempt.rglob("*"):
        assert path.is_dir() or path.is_socket() or b"very-secret-value" not in path.read_bytes()


def test_a_device_lock_is_held_by_the_keeper_and_not_by_the_command(replica: Replica, script: Script) -> None:
    with (replica.attempt / "device.lock").open("w") as lock:
        code = (
            "import os\n"
            "keeper = os.getppid()\n"
            f"held = lambda pid: any(os.readlink(f'/proc/{{pid}}/fd/{{fd}}') == {lock.name!r}"
            " for fd in os.listdir(f'/proc/{pid}/fd') if os.path.islink(f'/proc/{pid}/fd/{fd}'))\n"
            "supervisor = int(open(f'/proc/{keeper}/stat').read().rsplit(')', 1)[1].split()[1])\n"
            "print(held(supervisor), held(keeper), held('self'))\n"
        )
        replica.prepare(script(code))
        replica.start(pass_fds=[lock.fileno()])
        replica.wait()
    assert replica.said() == ["True True False"]


def test_what_outlives_the_command_is_ended_and_named(replica: Replica, script: Script) -> None:
    daemon = script(
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('daemon goes', flush=True), os._exit(0)))\n"
        "open('ready', 'w').close()\n"
        "signal.pause()\n"
    )
    line = f"setsid {shlex.join(daemon)} & until [ -e ready ]; do :; done; echo done"
    record = replica.run(["bash", "-c", line])
    assert record["code"] == 0
    assert len(record["left_behind"]) == 1
    assert record["left_behind"][0].startswith("python")
    assert replica.said() == ["done", "daemon goes"]
    assert not replica.alive()


@pytest.mark.parametrize(("code", "least", "most"), [(0, 4.5, 9), (1, 0.9, 4)])
def test_what_ignores_the_request_is_killed(
    replica: Replica, script: Script, code: int, least: float, most: float
) -> None:
    deaf = script("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen('ready', 'w')\nsignal.pause()\n")
    line = f"{shlex.join(deaf)} & until [ -e ready ]; do :; done; exit {code}"
    record = replica.run(["bash", "-c", line])
    assert record["code"] == code
    assert least < record["at"] - record["command_ended_at"] < most
    assert not record["killed_after_grace"]
    assert not replica.alive()


def test_a_large_last_word_is_whole(replica: Replica, script: Script) -> None:
    replica.run(script("import os\nfor i in range(20000): print('line', i)\nprint('no end', end='')"))
    assert replica.said() == [*(f"line {i}" for i in range(20000)), "no end"]


def test_the_status_follows(replica: Replica) -> None:
    replica.prepare(["sh", "-c", "until [ -e go ]; do sleep 0.01; done"])
    replica.start()
    pid = replica.command_pid()
    assert replica.status()["state"] == "running"
    eventually(lambda: pid in replica.alive())
    (replica.attempt / "go").touch()
    replica.wait()


def test_a_cleanup_runs_after_the_end(replica: Replica) -> None:
    script = f"ls {replica.path}/ranks >/dev/null 2>&1; echo $? > {replica.attempt}/cleaned; exit 3"
    record = replica.run(["sh", "-c", f"mkdir -p {replica.path}/ranks"], cleanup_argv=["sh", "-c", script])
    assert record["code"] == 0
    assert (replica.attempt / "cleaned").read_text() == "2\n"
