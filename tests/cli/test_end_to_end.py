"""Command lines against a real server: what users type, what they see, and the exit code they get."""

import json
import os
import re
import signal
import time
import urllib.request
from pathlib import Path

import pytest
from tests.cli.yard import SECONDS, Yard, in_terminal, wait_until

from torchyard.client.local import running


def shell(script: str) -> list[str]:
    return ["--", "sh", "-c", script]


def test_two_first_commands_start_one_server(tmp_path: Path, server: dict[str, str]) -> None:
    env = server | {"TORCHYARD_DATA": str(tmp_path / "data")}
    yard = Yard(env, tmp_path)
    try:
        with yard.start("list", "-o", "name") as one, yard.start("list", "-o", "name") as other:
            for each in (one, other):
                out, err = each.communicate(timeout=SECONDS)
                assert (each.returncode, out) == (0, ""), err
        found = running(tmp_path / "data")
        assert found is not None
        assert f"pid {found.pid}" in yard.run("server", "start").stdout
        assert str(found.pid) in yard.run("server", "status").stdout
    finally:
        yard.run("server", "stop")
    assert running(tmp_path / "data") is None
    yard.run("server", "status", code=1)


def test_second_server_on_the_same_data_says_who_is_there(tmp_path: Path, server: dict[str, str]) -> None:
    yard = Yard(server | {"TORCHYARD_DATA": str(tmp_path)}, tmp_path)
    with yard.start("server", "run") as first:
        assert wait_until(lambda: running(tmp_path) is not None, SECONDS)
        assert str(first.pid) in yard.run("server", "run", code=2).stderr
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=SECONDS)
    assert first.returncode == 0


def test_run_shows_the_output_and_exits_alike(yard: Yard) -> None:
    ran = yard.run("run", *shell("echo out; echo err >&2; pwd; exit 3"), code=3)
    assert ran.stdout == f"out\n{yard.folder}\n"
    first, *rest = ran.stderr.splitlines()
    assert re.fullmatch(r"train-\d+: 1 replica x no device = 1 rank", first)
    assert "err" in rest
    assert "failed: " in ran.stderr
    assert "exit 3" in ran.stderr


def test_run_of_a_success(yard: Yard) -> None:
    ran = yard.run("run", "--name", yard.name(), *shell("echo $X"), "-e", "X=0", code=None)
    assert ran.stdout == "\n"  # -e stands after the command: it is the command's
    ran = yard.run("run", "-e", "X=1", *shell("echo $X"))
    assert ran.stdout == "1\n"
    assert " completed" in ran.stderr.splitlines()[-1]


def test_run_by_signal(yard: Yard) -> None:
    assert "SIGKILL" in yard.run("run", *shell("kill -9 $$"), code=137).stderr


def test_spec_from_stdin(yard: Yard) -> None:
    spec = {"kind": "training", "spec": {"command": "sh -c 'echo $GREETING'"}}
    spec["spec"] |= {"environmentVariables": [{"name": "GREETING", "value": "hello"}]}
    assert yard.run("run", "-", stdin=json.dumps(spec)).stdout == "hello\n"


def test_detach_wait_logs_describe_explain_delete(yard: Yard) -> None:
    name = yard.name()
    ran = yard.run("run", "-d", "--name", name, *shell("echo one; echo two; exit 4"))
    assert ran.stdout == f"{name}\n"
    waited = yard.run("wait", name, code=4)
    assert waited.stdout == ""
    assert f"{name} failed" in waited.stderr
    assert yard.run("logs", name).stdout == "one\ntwo\n"
    assert yard.run("logs", name, "--tail", "1").stdout == "two\n"
    assert yard.run("logs", name, "-f").stdout == "one\ntwo\n"
    assert "no attempt before" in yard.run("logs", name, "--previous", code=2).stderr
    assert re.match(r"\d{4}-\d\d-\d\dT.* one\n", yard.run("logs", name, "--timestamps").stdout)
    assert name in yard.run("list", "-o", "name").stdout.splitlines()
    described = yard.run("describe", name).stdout
    assert "Failed" in described
    assert "Attempts:" in described
    explained = yard.run("explain", name).stdout
    assert explained.startswith(f"{name} failed: ")
    assert "exit 4" in explained
    assert yard.run("delete", name, code=2).stderr.endswith("add -y\n  see `torchyard delete --help`\n")
    yard.run("delete", name, "-y")
    assert wait_until(lambda: name not in yard.run("list", "-A", "-o", "name").stdout.split(), SECONDS)
    assert "there is no workload" in yard.run("describe", name, code=2).stderr
    yard.run("wait", name, code=125)


def test_names_that_nobody_has_are_no_empty_list(yard: Yard) -> None:
    assert "there is no project 'nobody'" in yard.run("list", "-p", "nobody", code=2).stderr


def test_ctrl_c_gives_waiting_and_reading_up_and_stops_nothing(yard: Yard) -> None:
    name = yard.name()
    yard.run("run", "-d", "--name", name, *shell("sleep 600"))
    yard.wait_for(name, "Running")
    with yard.start("wait", name) as waiting:
        time.sleep(1.5)
        waiting.send_signal(signal.SIGINT)
        assert f"{name} goes on" in waiting.communicate(timeout=2)[1]
        assert waiting.returncode == 130
    with yard.start("logs", name, "-f") as following:
        time.sleep(1.5)
        following.send_signal(signal.SIGINT)
        assert "torchyard" not in following.communicate(timeout=2)[1]
        assert following.returncode == 130
    assert yard.row(name)["phase"] == "Running"
    assert f"{name} runs and will be stopped" in yard.run("delete", name, code=2).stderr
    yard.run("delete", name, "-y")


def test_stop_and_resume(yard: Yard) -> None:
    name = yard.name()
    yard.run("run", "-d", "--name", name, *shell("echo begins; sleep 600"))
    yard.wait_for(name, "Running")
    yard.run("stop", name)
    assert "stopped" in yard.run("wait", name, code=130).stderr
    yard.run("resume", name)
    yard.wait_for(name, "Running")
    assert yard.row(name)["attempt"] == 2
    yard.run("suspend", name)
    yard.run("wait", name, code=130)
    assert yard.run("logs", name, "--attempt", "0").stdout == "begins\nbegins\n"


def test_taken_name_and_wrong_specs_create_nothing(yard: Yard) -> None:
    name = yard.name()
    yard.run("run", "-d", "--name", name, *shell("sleep 600"))
    before = yard.run("list", "-A", "-o", "name").stdout
    assert name in yard.run("run", "--name", name, *shell("exit 0"), code=125).stderr
    yard.run("training", "submit", name, "--command", code=2)
    assert "numWorkers" not in yard.run("run", "--name", "Not A Name", *shell("x"), code=125).stdout
    yard.run("run", "--name", "x" * 10_000, *shell("exit 0"), code=125)
    assert "devices" in yard.run("run", "-g", "99", *shell("exit 0"), code=125).stderr
    yard.run("list", "-p", "nowhere", code=None)
    assert "there is no project 'nowhere'" in yard.run("run", "-p", "nowhere", *shell("exit 0"), code=125).stderr
    assert yard.run("list", "-A", "-o", "name").stdout == before
    yard.run("delete", name, "-y")


def test_secrets_are_not_shown(yard: Yard) -> None:
    name = yard.name()
    yard.env = yard.env | {"HF_TOKEN": "hunter2"}
    ran = yard.run("run", "--name", name, "-e", "API_KEY=hunter3", *shell("echo $HF_TOKEN $API_KEY"))
    assert ran.stdout == "hunter2 hunter3\n"
    assert "hunter" not in yard.run("describe", name, "--json").stdout


def test_redrawn_lines_in_a_pipe(yard: Yard) -> None:
    script = "for i in 1 2 3; do printf 'step %s\\r' $i >&2; sleep 0.6; done; printf 'step 4\\n' >&2; echo end"
    ran = yard.run("run", *shell(script))
    assert ran.stdout == "end\n"
    assert [line for line in ran.stderr.splitlines() if line.startswith("step")] == ["step 4"]


def test_exec(yard: Yard) -> None:
    name = yard.name()
    yard.run("run", "-d", "--name", name, *shell("sleep 600"))
    yard.wait_for(name, "Running")
    ran = yard.run("exec", name, "--", "sh", "-c", "echo $TORCHYARD_WORKLOAD; echo no >&2; exit 5", code=5)
    assert (ran.stdout, ran.stderr) == (f"{name}\n", "no\n")
    assert yard.run("exec", name, "-i", "--", "cat", stdin="typed here\n").stdout == "typed here\n"
    assert yard.run("exec", name, "--", "cat").stdout == ""
    assert yard.run("bash", name, stdin="echo from the shell\nexit 6\n", code=6).stdout == "from the shell\n"
    assert "worker-9" in yard.run("exec", name, "--replica", "worker-9", "--", "true", code=None).stderr
    yard.run("delete", name, "-y")


def test_exec_with_a_terminal(yard: Yard) -> None:
    name = yard.name()
    yard.run("run", "-d", "--name", name, *shell("sleep 600"))
    yard.wait_for(name, "Running")
    seen, code = in_terminal(
        yard,
        ["exec", name, "-it", "--", "sh", "-c", "tty >/dev/null && stty size && read x && echo got $x"],
        typed="word\n",
    )
    assert code == 0
    assert "24 80" in seen
    assert "got word" in seen
    yard.run("delete", name, "-y")


def test_first_interrupt_detaches(yard: Yard) -> None:
    name = yard.name()
    sent: list[int] = []

    def react(pid: int, seen: str) -> None:
        if "begins" in seen and not sent:
            sent.append(pid)
            os.kill(pid, signal.SIGINT)

    seen, code = in_terminal(yard, ["run", "--name", name, *shell("echo begins; sleep 600")], react=react)
    assert code == 130
    for told in (f"detached; {name} goes on", f"torchyard logs {name} -f", f"torchyard stop {name}"):
        assert told in seen
    assert yard.row(name)["phase"] == "Running"
    yard.run("delete", name, "-y")


def test_second_interrupt_stops(yard: Yard) -> None:
    name = yard.name()
    sent: list[int] = []

    def react(pid: int, seen: str) -> None:
        if len(sent) < ("begins" in seen) + ("detached" in seen):
            sent.append(pid)
            os.kill(pid, signal.SIGINT)

    script = "trap 'echo trapped; exit 0' TERM; echo begins; sleep 600 & wait"
    seen, code = in_terminal(yard, ["run", "--name", name, *shell(script)], react=react)
    assert code == 130
    assert "trapped" in seen
    assert f"{name} was stopped by" in seen
    assert yard.row(name)["phase"] == "Stopped"


def test_progress_bar_on_a_terminal(yard: Yard) -> None:
    script = "for i in 1 2 3 4; do echo Epoch $i/4 loss: 0.$i; sleep 0.4; done"
    seen, code = in_terminal(yard, ["run", *shell(script)])
    assert code == 0
    assert re.search(r"epoch \d/4 \[=* *\]", seen)


def test_killed_server_is_not_noticed_by_the_run(yard: Yard, tmp_path: Path) -> None:
    env = yard.env | {"TORCHYARD_DATA": str(tmp_path / "data")}
    yard = Yard(env, yard.folder)
    script = "i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); sleep 0.1; done; exit 7"
    with yard.start("run", "--name", "tough", *shell(script)) as following:
        assert following.stdout is not None
        lines = [following.stdout.readline()]
        found = running(tmp_path / "data")
        assert found is not None
        os.kill(found.pid, signal.SIGKILL)
        out, err = following.communicate(timeout=SECONDS)
    assert following.returncode == 7, err
    assert "".join(lines) + out == "".join(f"line {number}\n" for number in range(40))
    yard.run("server", "stop")


def test_claims_and_files(yard: Yard, tmp_path: Path) -> None:
    claim = f"c-{yard.name()}"
    yard.run("pvc", "create", claim, "--size", "10TB", "--access-mode", "RWX", "--path", "/data")
    yard.run("pvc", "create", claim, "--size", "10TB", "--path", "/data", code=2)
    refused = yard.run("pvc", "create", f"{claim}-up", "--size", "1G", "--path", "/../etc", code=2)
    assert "spec.path: leads upwards (..)" in refused.stderr
    mounted = ["--existing-pvc", f"claimname={claim},path=/data/../../etc"]
    assert "leads upwards (..)" in yard.run("training", "submit", *mounted, "-c", "--", "true", code=2).stderr
    listed = json.loads(yard.run("pvc", "list", "--json").stdout)
    assert claim in [entry["meta"]["name"] for entry in listed]
    assert re.search(rf"{claim} +/data +10TB? +RWX", yard.run("pvc", "list").stdout)
    source = yard.folder / "data"
    (source / "sub" / "empty").mkdir(parents=True)
    (source / "a.txt").write_text("a")
    (source / "sub" / "ü b.bin").write_bytes(bytes(range(256)) * 5000)
    (yard.folder / "data" / "far").symlink_to("/etc/passwd")
    copied = yard.run("pvc", "cp", "./data", f"{claim}:/data")
    assert "2 files" in copied.stdout
    assert "1 link left out: links to folders and out of data are not followed" in copied.stderr
    assert yard.run("pvc", "ls", f"{claim}:/data").stdout.split()[::3][:2] == ["NAME", "sub/"]
    assert yard.run("pvc", "ls", f"{claim}:/", "-o", "name").stdout == "data\n"
    yard.run("pvc", "cp", f"{claim}:/data", "back")
    assert (yard.folder / "back" / "sub" / "ü b.bin").read_bytes() == (source / "sub" / "ü b.bin").read_bytes()
    yard.run("pvc", "cp", "data/a.txt", f"{claim}:/")
    yard.run("pvc", "cp", f"{claim}:/a.txt", "./")
    assert (yard.folder / "a.txt").read_text() == "a"
    assert "--force" in yard.run("pvc", "cp", f"{claim}:/a.txt", ".", code=2).stderr
    yard.run("pvc", "cp", "--force", f"{claim}:/a.txt", ".")
    assert "-r" in yard.run("pvc", "rm", f"{claim}:/data", code=2).stderr
    yard.run("pvc", "rm", "-r", f"{claim}:/data")
    yard.run("pvc", "ls", f"{claim}:/data", code=2)
    assert "there is no claim" in yard.run("pvc", "ls", "nothing:/", code=2).stderr
    name, mount = yard.name(), ["--existing-pvc", f"claimname={claim},path=/data"]
    yard.run("run", "-d", "--name", name, "--isolation", "process", *mount, *shell("sleep 600"))
    assert f"is used by {name}" in yard.run("pvc", "delete", claim, "-y", code=2).stderr
    yard.run("delete", name, "-y")
    wait_until(lambda: name not in yard.run("list", "-A", "-o", "name").stdout.split(), SECONDS)
    yard.run("pvc", "delete", claim, "-y")
    assert claim not in yard.run("pvc", "list", "-o", "name").stdout.split()


def test_submit_with_code_claim_and_checkpoint(yard: Yard) -> None:
    name, claim = yard.name(), f"c-{yard.name()}"
    yard.run("pvc", "create", claim, "--size", "1G", "--path", "/checkpoints")
    code = yard.folder / "code"
    code.mkdir()
    (code / "save.py").write_text(
        "import os, zipfile\n"
        f"folder = os.environ['TORCHYARD_VOLUME_{claim.upper().replace('-', '_')}']\n"
        "rank = os.environ['RANK']\n"
        "print('rank', rank, 'of', os.environ['WORLD_SIZE'], 'in', os.listdir('.'))\n"
        "with zipfile.ZipFile(f'{folder}/snapshot{rank}.pt', 'w') as file:\n"
        "    file.writestr('archive/data.pkl', b'x' * 1000)\n"
    )
    (code / ".torchyardignore").write_text(".torchyardignore\n*.pt\n")
    (code / "old.pt").write_text("")
    ran = yard.run(
        "training", "pytorch", "submit", name, "--workers", "1", "-g", "1", "--code", "code", "--isolation", "process",
        "--existing-pvc", f"claimname={claim},path=/checkpoints", "--command", "--", "python", "save.py",
    )  # fmt: skip
    assert f"{name}: 2 replicas x 1 device = 2 ranks" in ran.stdout
    assert ran.stderr.splitlines()[0] == "code: 1 file, 2 left out (2 ignored by .torchyardignore)"
    yard.run("wait", name)
    lines = sorted(yard.run("logs", name).stdout.splitlines())
    assert [line.partition(" | ")[0].strip() for line in lines] == ["master-0", "worker-0"]
    assert "rank 1 of 2 in ['save.py']" in lines[1]
    assert yard.run("logs", name, "--replica", "worker-0").stdout == "rank 1 of 2 in ['save.py']\n"
    found = json.loads(yard.run("checkpoint", "list", name, "--json").stdout)
    assert sorted(each["path"] for each in found) == ["snapshot0.pt", "snapshot1.pt"]
    missing = yard.run("checkpoint", "download", name, "snapshot1.pt", "-o", "missing/x.pt", code=2)
    assert "there is no folder missing" in missing.stderr
    assert not (yard.folder / "missing").exists()
    yard.run("checkpoint", "download", name, "snapshot1.pt")
    assert (yard.folder / "snapshot1.pt").stat().st_size > 1000
    assert "--force" in yard.run("checkpoint", "download", name, "snapshot1.pt", code=2).stderr
    yard.run("checkpoint", "download", name, "snapshot1.pt", "-o", "new/")
    assert (yard.folder / "new" / "snapshot1.pt").is_file()
    assert "snapshot0.pt" in yard.run("checkpoint", "download", name, "nothing.pt", code=2).stderr
    yard.run("delete", name, "-y")


def test_places(yard: Yard) -> None:
    assert re.search(r"\* +default", yard.run("project", "list").stdout)
    yard.run("project", "set", "default")
    assert "nowhere" in yard.run("project", "set", "nowhere", code=2).stderr
    assert re.search(r"\* +local", yard.run("cluster", "list").stdout)
    yard.run("cluster", "set", "local")
    assert "4 x " in yard.run("node", "list").stdout
    me = json.loads(yard.run("whoami", "--json").stdout)
    assert me["username"] in yard.run("whoami").stdout
    assert yard.run("server", "prune", "--dry-run", "--older-than", "1d").stdout.strip()


def test_page_opens_by_the_link_once(yard: Yard) -> None:
    link = yard.run("ui").stdout.strip()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(link, timeout=SECONDS) as page:
        assert page.status == 200
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(link, timeout=SECONDS)
    assert refused.value.code == 401
    refused.value.close()


@pytest.mark.torch
def test_script_by_torchrun(yard: Yard) -> None:
    (yard.folder / "train.py").write_text(
        "import os, sys, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "print('rank', dist.get_rank(), 'of', dist.get_world_size(), sys.argv[1:])\n"
        "dist.destroy_process_group()\n"
    )
    ran = yard.run("run", "--nproc-per-node", "2", "train.py", "--lr", "1")
    lines = sorted(line for line in ran.stdout.splitlines() if "rank" in line)
    assert lines == ["worker-0/0 | rank 0 of 2 ['--lr', '1']", "worker-0/1 | rank 1 of 2 ['--lr', '1']"]
    assert "1 replica x 2 devices = 2 ranks" in ran.stderr
