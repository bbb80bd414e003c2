"""A launcher that does to its ranks what torchrun does, with the standard library only."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

nproc = int(os.environ["PET_NPROC_PER_NODE"])
restarts = int(os.environ.get("PET_MAX_RESTARTS", "0"))
files = "PET_REDIRECTS" in os.environ or "PET_TEE" in os.environ
patience = float(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))
root = Path(os.environ["PET_LOG_DIR"])
first = nproc * int(os.environ.get("PET_NODE_RANK", "0"))


class Asked(Exception):
    """SIGTERM came."""


def asked(number, frame):
    raise Asked


class Ranks:
    """The ranks of one round, and the threads that copy their files."""

    def __init__(self, restart: int, run: Path) -> None:
        self.procs: list[subprocess.Popen] = []
        self.tails: list[threading.Thread] = []
        self.over = threading.Event()
        for local in range(nproc):
            env = {**os.environ, "RANK": str(first + local), "LOCAL_RANK": str(local), "TORCHELASTIC_RUN_ID": "ddp-1"}
            env["TORCHELASTIC_RESTART_COUNT"] = str(restart)
            out = err = None
            if files:
                folder = run / f"attempt_{restart}" / str(local)
                folder.mkdir(parents=True)
                env["TORCHELASTIC_ERROR_FILE"] = str(folder / "error.json")
                out, err = (folder / "stdout.log").open("w"), (folder / "stderr.log").open("w")
                self._copy(folder / "stdout.log", first + local, sys.stdout)
                self._copy(folder / "stderr.log", first + local, sys.stderr)
            proc = subprocess.Popen(sys.argv[1:], env=env, stdout=out, stderr=err, start_new_session=True)
            self.procs.append(proc)
        for thread in self.tails:
            thread.start()

    def _copy(self, path: Path, rank: int, out) -> None:
        if "PET_TEE" in os.environ:
            self.tails.append(threading.Thread(target=self._tail, args=(path, rank, out)))

    def _tail(self, path: Path, rank: int, out) -> None:
        with path.open(errors="replace") as file:
            while True:
                line = file.readline()
                if line:
                    out.write(f"\x1e[{rank}] {line}")
                    out.flush()
                elif self.over.is_set():
                    return
                else:
                    self.over.wait(0.1)

    def wait(self) -> bool:
        """True: all went well."""
        while True:
            codes = [proc.poll() for proc in self.procs]
            if any(codes) or None not in codes:
                return not any(codes)
            time.sleep(0.05)

    def close(self) -> None:
        for proc in self.procs:
            if proc.poll() is None:
                os.killpg(proc.pid, signal.SIGTERM)
        until = time.monotonic() + patience
        for proc in self.procs:
            try:
                proc.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(proc.pid, signal.SIGKILL)
                proc.wait()
        self.over.set()
        for thread in self.tails:
            thread.join()


def main() -> None:
    signal.signal(signal.SIGTERM, asked)
    root.mkdir(exist_ok=True)
    run = Path(tempfile.mkdtemp(prefix="ddp-1_", dir=root))
    for restart in range(restarts + 1):
        ranks = Ranks(restart, run)
        try:
            well = ranks.wait()
        except Asked:
            ranks.close()
            sys.exit("Asked: signal 15")
        ranks.close()
        if well:
            return
    sys.exit("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: a rank failed")


main()
