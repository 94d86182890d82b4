#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program of the cuda target, as far as tools/gpu_check.sh can see: notes that it ran, and writes what it is asked for.
name=$(basename "$0")
echo "$name" >>"$CALLS"
[ "$name" != "${FAILS:-}" ] || { echo "CUDA device on fire" >&2; exit 3; }
while [ $# -gt 0 ]; do
  case $1 in
    --log)
      { echo '{"event":"start","batch":256,"strategy":"keep","device_bytes":1,"host_bytes":0}'
        for ms in 9 1 3 1 3; do echo "{\"event\":\"step\",\"loss\":1,\"ms\":$ms}"; done
        for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23; do printf '{"event":"step","loss":1,"ms":%s}\n' 1 3; done
        echo '{"event":"end","median_ms":2,"predicted_ms":2,"device_peak_bytes":1,"driver_bytes":1}'
      } >"$2" ;;
    --profile-out) echo '{"links":{}}' >"$2" ;;
  esac
  shift
done
