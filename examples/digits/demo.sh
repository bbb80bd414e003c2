#!/usr/bin/env bash
# The whole story on one machine: submit two replicas, kill -9 one rank, watch it resume, take the checkpoint, ask why.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d)

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
try() { printf '$ %s\n' "$*"; "$@"; }

isolation=()
if ! command -v bwrap >/dev/null; then
  if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    say "Installing bubblewrap, for the sandbox"
    { apt-get install -y -qq bubblewrap || { apt-get update -qq && apt-get install -y -qq bubblewrap; }; } >/dev/null 2>&1 || true
  fi
fi
if ! command -v bwrap >/dev/null || ! bwrap --dev-bind / / true 2>/dev/null; then
  say "No bubblewrap here: going on with --isolation process"
  isolation=(--isolation process)
fi

say "A claim for checkpoints"
torchyard pvc list -o name | grep -qx checkpoints \
  || try torchyard pvc create checkpoints --size 10TB --access-mode RWX --path /checkpoints

say "A master and a worker, one device each: distributed training on real data"
torchyard delete digits-demo --yes >/dev/null 2>&1 || true
try torchyard training pytorch submit digits-demo -p default --workers 1 -g 1 --code "$here" \
  --existing-pvc claimname=checkpoints,path=/checkpoints "${isolation[@]}" --command -- bash run.sh

say "It trains; the first checkpoint comes at epoch 25"
torchyard logs digits-demo --follow | grep --line-buffered -m1 -E 'epoch +3[0-9]/' || true

say "kill -9 of rank 1"
pid=$(torchyard describe digits-demo -o json | python3 -c '
import json, sys
ranks = [r for replica in json.load(sys.stdin)["attempts"][-1]["replicas"] for r in replica["ranks"]]
print(next(r["pid"] for r in ranks if r["rank"] == 1))')
try kill -9 "$pid"

say "A new attempt resumes from the checkpoint by itself"
try torchyard wait digits-demo
torchyard logs digits-demo --attempt 2 --rank 0 | grep -E 'resuming|test accuracy'
try torchyard explain digits-demo

say "Checkpoints"
try torchyard checkpoint list digits-demo
try torchyard checkpoint download digits-demo snapshot.pt -o "$out/snapshot.pt"

say "What to type next"
cat <<EOF
source .venv/bin/activate
torchyard run --nproc-per-node 2 train.py        # your torchrun line, one word changed
torchyard describe digits-demo                   # attempts, replicas, ranks, events
torchyard logs digits-demo --attempt 1           # what the killed attempt printed
torchyard ui                                     # the page
torchyard delete digits-demo                     # the checkpoints stay
EOF
