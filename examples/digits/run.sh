#!/bin/bash
# Trains on the digits and keeps the snapshot on the claim `checkpoints`, where the next attempt and other workloads find it.
set -euo pipefail

: "${TORCHYARD_VOLUME_CHECKPOINTS:?mount a claim named checkpoints: --existing-pvc claimname=checkpoints,path=/checkpoints}"

# batch size 32, 100 epochs, a snapshot every 25; ranks, addresses and ports come from the environment
torchrun multinode.py --batch_size 32 --snapshot "$TORCHYARD_VOLUME_CHECKPOINTS/snapshot.pt" "$@" 100 25
