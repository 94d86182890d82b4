#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a step of two ranks on two hosts takes (hosts.sh), each with one thread on a core of its own, over a cable of some rate, by programs of one or several
# compilers and by PyTorch's DDP over gloo, which run one after the other, ROUNDS times. Prints the fastest step of each. As root.
#
#   tools/bench/hosts_steps.sh MODEL.onnx BATCH STEPS ROUNDS RATE SLUICEC... [-- PYTHON RANKS_TORCH_ARGUMENT...]
set -euo pipefail
cd "$(dirname "$0")/../.."
model=$1 batch=$2 steps=$3 rounds=$4 cable=$5
shift 5
work=$(mktemp -d)
# shellcheck source=hosts.sh
source tools/bench/hosts.sh
slow_down "$cable"

programs=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  program=$work/program${#programs[@]}
  "$1" "$model" --batch="$batch" --threads=1 --init=kaiming --ranks=mpi -o "$program" >"$work/compiled" 2>&1 || { cat "$work/compiled"; exit 1; }
  programs+=("$program")
  echo "program ${#programs[@]}: $1"
  shift
done
[ $# -eq 0 ] || shift

fastest() { sed -n 's/.*"event":"step".*"ms":\([0-9.]*\).*/\1/p' "$1" | tail -n +2 | sort -n | head -n 1; }
cat >"$work/pinned" <<'PINNED'
#!/bin/sh
# A rank on the core of its number.
exec taskset -c "${OMPI_COMM_WORLD_RANK:-0}" "$@"
PINNED
chmod +x "$work/pinned"
for round in $(seq "$rounds"); do
  for i in "${!programs[@]}"; do
    rm -f "$work/log"
    together "$work/pinned" "${programs[$i]}" --data synthetic --lr 0.001 --threads 1 --steps "$steps" --log "$work/log" >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
    echo "round $round, program $((i + 1)), $cable: $(fastest "$work/log") ms"
  done
  if [ $# -gt 0 ]; then
    for rank in 0 1; do
      host=sluice-$([ $rank = 0 ] && echo a || echo b)
      MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 GLOO_SOCKET_IFNAME=cable ip netns exec $host "$1" tools/bench/ranks_torch.py $rank 2 env "$batch" "$steps" "${@:2}" >"$work/torch$rank" 2>"$work/torch$rank.err" &
    done
    wait
    echo "round $round, PyTorch DDP over gloo, $cable: $(cat "$work/torch0")"
  fi
done
