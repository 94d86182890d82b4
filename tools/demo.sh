#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds the compiler, then trains two models in half of the memory that they need without a plan:
# a small residual CNN on scikit-learn's digits to 97 % and more on images held out, and ONNX's own ResNet-50 for some steps.
#
#   tools/demo.sh [FOLDER]     FOLDER (default: build/demo) takes data, programs and logs
set -euo pipefail
# shellcheck source=setup.sh
source "$(dirname "$0")/setup.sh"

folder=${1:-build/demo}
sluicec=build/bin/sluicec

install_demo_data() {
  [ -f "$folder/digits.onnx" ] && return
  say "fetching scikit-learn (it carries the digits) into $deps/venv-demo"
  [ -x "$deps/venv-demo/bin/python" ] || python3 -m venv "$deps/venv-demo"
  "$deps/venv-demo/bin/pip" install -q onnx
  "$deps/venv-demo/bin/pip" install -q --no-deps scikit-learn
  "$deps/venv-demo/bin/python" tools/python/digits.py "$folder"
}

# Value of a key in the last line of a JSONL log that holds it.
field() { grep -o "\"$2\":[0-9.e+-]*" "$1" | tail -n 1 | cut -d: -f2; }

# compile MODEL PROGRAM FLAG...: for half of what keeping everything needs; where this processor's kernels need more, for the least they can do with.
compile() {
  local model=$1 program=$2 log=$2.compilation status=0 smallest
  shift 2
  say "compiling $(basename "$model") for 50 % of the memory that keeping everything needs"
  "$sluicec" "$model" "$@" --force --memory-budget=50% --explain -o "$program" >"$log" 2>&1 || status=$?
  if [ "$status" -eq 3 ]; then
    smallest=$(sed -n 's/^smallest feasible budget: \([0-9]*\) bytes$/\1/p' "$log")
    say "the kernels of this processor need more: compiling for the smallest feasible budget, $smallest bytes"
    status=0
    "$sluicec" "$model" "$@" --force --memory-budget="$smallest" --explain -o "$program" >"$log" 2>&1 || status=$?
  fi
  [ "$status" -eq 0 ] || { cat "$log"; exit "$status"; }
  tail -n 3 "$log" # strategy, what keep needs, predicted time
}

# train NAME FLAG...: then says what it took.
train() {
  local name=$1
  shift
  "$folder/$name" --log "$folder/$name.jsonl" "$@"
  say "$name: $(field "$folder/$name.jsonl" device_peak_bytes) bytes of device memory used; $(sed -n 's/^\(keep needs [^,]*\),.*/\1/p' "$folder/$name.compilation")"
}

train_digits() {
  compile "$folder/digits.onnx" "$folder/digits" --batch=64 --init=kaiming
  train digits --data "$folder/train" --evaluate "$folder/test" --epochs 12 --lr 0.05 --shuffle
  local accuracy
  accuracy=$(field "$folder/digits.jsonl" accuracy)
  say "accuracy on images held out: $accuracy"
  awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.97) }' || { say "error: expected 0.97 at least"; exit 1; }
}

train_resnet50() {
  compile "$onnx_prefix/test-data/light/light_resnet50.onnx" "$folder/resnet50" --init=kaiming --batch=16
  train resnet50 --data synthetic --steps 4 --lr 0.01
}

mkdir -p "$folder"
install_packages
install_onnx
build release sluicec sluice
install_demo_data
train_digits
train_resnet50
say "done in $((SECONDS / 60)) min $((SECONDS % 60)) s; what to try next:
  $folder/digits --help                                             what a program can do
  $folder/digits --plan                                             what is in its memory when
  $sluicec $folder/digits.onnx --batch=64 --emit=source -o digits.cpp    the program's source
  $sluicec YOUR.onnx --batch=32 --memory-budget=60% -o yours        your own model: README, \"Train your own model\"
  tools/test.sh                                                     builds the rest and runs all tests"
