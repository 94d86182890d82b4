#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains on two hosts, which are two network namespaces with a cable between them, and compares with one process: as the cable is, slowed to 100 Mbit/s, and cut
# in the middle of a run. As root.
#
#   tools/bench/two_hosts.sh [SLUICEC]
set -euo pipefail
cd "$(dirname "$0")/../.."
sluicec=${1:-build/bin/sluicec}
work=$(mktemp -d)
# shellcheck source=hosts.sh
source tools/bench/hosts.sh

model=test/models/tiny/resnet
"$sluicec" $model/model.onnx --batch=4 --ranks=mpi --accumulate -o "$work/resnet" >"$work/compiled" 2>&1
train=("$work/resnet" --data "$PWD/$model/data" --steps 50 --lr 0.02 --shuffle --threads 1)
"${train[@]}" --accumulate 2 --export "$work/one.safetensors" >"$work/out"
for rate in "" 100mbit; do
  [ -z "$rate" ] || slow_down $rate
  together "${train[@]}" --export "$work/two.safetensors" --force >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
  cmp "$work/one.safetensors" "$work/two.safetensors"
  echo "two hosts${rate:+, $rate}: the weights of one process; $(grep '^time' "$work/out")"
done
# Ranks still running, on either host.
ranks() {
  local host pid
  for host in sluice-a sluice-b; do
    for pid in $(ip netns pids $host); do
      [ "$(readlink "/proc/$pid/exe")" != "$work/resnet" ] || echo "$pid"
    done
  done
}
: >"$work/log"
together "$work/resnet" --data "$PWD/$model/data" --steps 100000000 --lr 0.001 --threads 1 --log "$work/log" --force >"$work/out" 2>&1 &
until [ "$(grep -c '"step"' "$work/log")" -ge 20 ]; do sleep 0.1; done
echo "ranks before the cable is cut: $(ranks | wc -l)"
ip -n sluice-b link set cable down
begin=$SECONDS
while [ -n "$(ranks)" ] && [ $((SECONDS - begin)) -lt 30 ]; do sleep 0.1; done
echo "a cable that was cut: ranks left after $((SECONDS - begin)) s: $(ranks | wc -l)"
# What they said comes through the launcher.
for _ in $(seq 50); do grep -aq 'resnet: error: ' "$work/out" && break || sleep 0.1; done
grep -ao 'resnet: error: .*' "$work/out" || tail -n 3 "$work/out"
