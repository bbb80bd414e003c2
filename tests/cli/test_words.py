"""Words beside a workload: completion in a shell, ports and following from another terminal, the trace of an error."""

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.yard import SECONDS, Yard, wait_until

SHELL = """
eval "$(./torchyard completion bash)"
COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
_torchyard_completion ./torchyard
printf '%%s\\n' "${COMPREPLY[@]}"
"""
ECHO = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
print("PORT", server.getsockname()[1])
while True:
    connection, _ = server.accept()
    whole = b""
    while piece := connection.recv(65536):
        whole += piece
    connection.sendall(whole[::-1])
    connection.close()
"""


def offered(yard: Yard, *words: str, env: dict[str, str] | None = None) -> list[str]:
    """What bash offers after these words and TAB."""
    program = yard.folder / "torchyard"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m torchyard.cli.main "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", SHELL % " ".join(f"'{word}'" for word in ("torchyard", *words))],
        env=env or yard.env,
        cwd=yard.folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    return done.stdout.split()


def test_bash_completes_commands_flags_and_names(yard: Yard) -> None:
    name = yard.name()
    yard.run("run", "--name", name, "--", "true")
    assert offered(yard, "desc") == ["describe"]
    assert name in offered(yard, "training", "pytorch", "logs", name[:1])
    assert offered(yard, "list", "-p", "def") == ["default"]
    assert "--nproc-per-node" in offered(yard, "run", "--np")


def test_a_keystroke_starts_no_server(yard: Yard, tmp_path: Path) -> None:
    elsewhere = yard.env | {"TORCHYARD_DATA": str(tmp_path / "none")}
    assert offered(yard, "describe", "", env=elsewhere) == []
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(yard: Yard, shell: str) -> None:
    assert "_TORCHYARD_COMPLETE" in yard.run("completion", shell).stdout


def test_debug_shows_where_an_error_comes_from(yard: Yard) -> None:
    short = yard.run("describe", "nobody", code=2).stderr
    assert "Traceback" not in short
    assert len(short.splitlines()) == 2
    for words in (("--debug", "describe", "nobody"), ("describe", "nobody", "--debug")):
        long = yard.run(*words, code=2).stderr
        assert "Traceback" in long
        assert long.endswith(short)


def test_a_port_of_a_replica_here(yard: Yard) -> None:
    name = yard.name()
    (yard.folder / "echo.py").write_text(ECHO)
    yard.run("run", "-d", "--name", name, "--", "python3", "echo.py")

    def port() -> str:
        found = re.search(r"PORT (\d+)", yard.run("logs", name).stdout)
        return found[1] if found else ""

    assert wait_until(lambda: bool(port()), SECONDS)
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = free.getsockname()[1]
    with yard.start("port-forward", name, "--port", f"0:{port()}", "--port", f"0:{nobody}") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        here, refused = (int(process.stdout.readline().split()[0].rpartition(":")[2]) for _ in range(2))
        data = bytes(range(256)) * 4096
        with socket.create_connection(("localhost", here), SECONDS) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            got = b""
            while piece := connection.recv(65536):
                got += piece
        assert got == data[::-1]
        with socket.create_connection(("localhost", refused), SECONDS) as connection:
            assert connection.recv(1) == b""
        assert f"port {nobody} of the replica" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
    yard.run("delete", "-y", name)


def test_a_port_that_is_taken_and_one_that_is_none(yard: Yard) -> None:
    name = yard.name()
    yard.run("run", "--name", name, "--", "true")
    with socket.create_server(("localhost", 0)) as taken:
        said = yard.run("port-forward", name, "--port", f"{taken.getsockname()[1]}:80", code=1).stderr
    assert "choose another local port" in said
    for wrong in ("x", "1:0", "1:70000", ""):
        assert "LOCAL:REMOTE" in yard.run("port-forward", name, "--port", wrong, code=2).stderr


def test_attach_ends_as_the_training_does(yard: Yard) -> None:
    name = yard.name()
    yard.run("run", "-d", "--name", name, "--", "bash", "-c", "until [ -e go ]; do sleep 0.05; done; echo last; exit 7")
    with yard.start("attach", name) as process:
        (yard.folder / "go").touch()
        out, _ = process.communicate(timeout=SECONDS)
    assert "last" in out
    assert process.returncode == 7


def test_node_pools_are_listed(yard: Yard) -> None:
    assert "default" in yard.run("nodepool", "list").stdout
