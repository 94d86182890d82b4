# SPDX-License-Identifier: Apache-2.0
# Two hosts on one machine, sourced by the scripts that train on them: network namespaces with a cable between them, and `together`, which starts a rank on each.
# As root. Takes the folder $work, which goes with the hosts when the script ends.
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

# The cable carries so much (100mbit).
slow_down() {
  local host
  for host in sluice-a sluice-b; do tc -n $host qdisc replace dev cable root tbf rate "$1" burst 32kbit latency 400ms; done
}
