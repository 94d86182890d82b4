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
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Launchers wait for the other host much longer than ranks do.
tidy() {
  local host pid
  for host in sluice-a sluice-b; do
    for pid in $(ip netns pids $host 2>/dev/null); do kill -9 "$pid" || true; done
  done
  ip netns del sluice-a 2>/dev/null || true
  ip netns del sluice-b 2>/dev/null || true
  rm -rf /etc/netns/sluice-a /etc/netns/sluice-b "$work"
}
trap tidy EXIT

# Hosts know each other by name; a host is a namespace with that name.
ip netns add sluice-a
ip netns add sluice-b
ip link add cable netns sluice-a type veth peer name cable netns sluice-b
for host in a:10.77.0.1 b:10.77.0.2; do
  name=sluice-${host%%:*}
  mkdir -p "/etc/netns/$name"
  printf '127.0.0.1 localhost\n10.77.0.1 sluice-a\n10.77.0.2 sluice-b\n' >"/etc/netns/$name/hosts"
  ip -n "$name" address add "${host##*:}/24" dev cable
  ip -n "$name" link set cable up
  ip -n "$name" link set lo up
done
cat >"$work/agent" <<'AGENT'
#!/bin/sh
# What MPI asks another host to do: HOST COMMAND...
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
AGENT
chmod +x "$work/agent"
together() {
  "$work/agent" sluice-a mpirun -q --mca plm_rsh_agent "$work/agent" --mca btl self,tcp --mca btl_tcp_if_include 10.77.0.0/24 \
    --mca oob_tcp_if_include 10.77.0.0/24 --bind-to none --host sluice-a:1,sluice-b:1 -n 2 "$@"
}

model=test/models/tiny/resnet
"$sluicec" $model/model.onnx --batch=4 --ranks=mpi --accumulate -o "$work/resnet" >"$work/compiled" 2>&1
train=("$work/resnet" --data "$PWD/$model/data" --steps 50 --lr 0.02 --shuffle --threads 1)
"${train[@]}" --accumulate 2 --export "$work/one.safetensors" >"$work/out"
for rate in "" 100mbit; do
  [ -z "$rate" ] || for host in sluice-a sluice-b; do tc -n $host qdisc add dev cable root tbf rate $rate burst 32kbit latency 400ms; done
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
grep -ao 'resnet: error: .*' "$work/out" || tail -n 3 "$work/out"
