#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The conformance set in processes beside each other: prints what each says, exits 1 where a test failed.
#
#   gpu_conformance.sh PROGRAM FOLDER       FOLDER/N.txt: what process N said
set -u
mkdir -p "$2"
shards=$(nproc)
[ "$shards" -le 12 ] || shards=12
processes=()
for ((shard = 0; shard < shards; shard++)); do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard "$1" --gtest_brief=1 >"$2/$shard.txt" 2>&1 &
  processes+=($!)
done
status=0
for process in "${processes[@]}"; do wait "$process" || status=1; done
cat "$2"/*.txt
exit $status
