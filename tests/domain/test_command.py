"""What a command line is: its words, whether it is torchrun itself, which file it starts."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchyard.domain.command import argv_of, is_torchrun, script_of
from torchyard.domain.errors import Invalid
from torchyard.domain.spec import ReplicaSpec

words = st.lists(
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20), min_size=1
)


@given(words)
def test_words_come_back_as_they_went(argv: list[str]) -> None:
    assert argv_of(ReplicaSpec(command=shlex.join(argv))) == tuple(argv)


@given(words, words)
def test_args_follow_the_command(command: list[str], args: list[str]) -> None:
    spec = ReplicaSpec(command=shlex.join(command), args=shlex.join(args))
    assert argv_of(spec) == (*command, *args)


@pytest.mark.parametrize(
    ("text", "what"), [("bash -c 'x", "a quote is not closed"), ("bash \\", "it ends in a backslash")]
)
def test_a_broken_command_names_its_field(text: str, what: str) -> None:
    with pytest.raises(Invalid) as caught:
        argv_of(ReplicaSpec(args=text), "masterSpec")
    assert [(p.field, p.details) for p in caught.value.problems] == [("masterSpec.args", what)]


@pytest.mark.parametrize(
    ("command", "torchrun"),
    [
        ("torchrun train.py", True),
        ("/opt/venv/bin/torchrun --standalone train.py", True),
        ("python -m torch.distributed.run train.py", True),
        ("/usr/bin/python3.11 -u -X dev -m torch.distributed.run train.py", True),
        ("python -m torch.distributed.launch train.py", True),
        ("python train.py", False),
        ("python -m train", False),
        ("python train.py -m torch.distributed.run", False),
        ("python -c 'import x' -m torch.distributed.run", False),
        ("bash run.sh", False),
        ("bash -c 'torchrun train.py'", False),
        ("mytorchrun train.py", False),
        ("", False),
    ],
)
def test_is_torchrun(command: str, torchrun: bool) -> None:
    assert is_torchrun(tuple(shlex.split(command))) is torchrun


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("python train.py --epochs 3", "train.py"),
        ("python3 -u -W ignore src/train.py", "src/train.py"),
        ("python -m train", None),
        ("python -c 'print(1)'", None),
        ("python /opt/train.py", None),
        ("torchrun multinode.py --batch_size 32 100 25", "multinode.py"),
        ("torchrun --standalone --nproc_per_node 2 train.py", "train.py"),
        ("torchrun --standalone --nproc-per-node=2 --log-dir logs train.py --x", "train.py"),
        ("torchrun --nnodes 1 -m train", None),
        ("torchrun --no_python ./prog", None),
        ("python -m torch.distributed.run --nproc-per-node gpu train.py", "train.py"),
        ("bash run.sh", "run.sh"),
        ("bash -euo pipefail run.sh", "run.sh"),
        ("bash -eu -o pipefail run.sh arg", "run.sh"),
        ("bash --login run.sh", "run.sh"),
        ("bash -c 'cd x && y'", None),
        ("sh -ec run.sh", None),
        ("./run.sh", "./run.sh"),
        ("run.sh", None),
        ("bash $HOME/run.sh", None),
        ("bash ~/run.sh", None),
        ("bash", None),
        ("", None),
    ],
)
def test_script_of(command: str, script: str | None) -> None:
    assert script_of(tuple(shlex.split(command))) == script


@given(
    st.lists(st.sampled_from(["python", "-m", "-c", "-X", "torchrun", "--tee", "bash", "-o", "-", "--", "a.py", "/x"]))
)
def test_any_words_have_an_answer(argv: list[str]) -> None:
    script = script_of(tuple(argv))
    assert script is None or script in argv
