#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, then trains two models in half of the memory that they need without a plan:
# a small residual CNN on scikit-learn's digits to 97 % and more on images held out, and ONNX's own ResNet-50 for some steps.
#
#   tools/demo.sh [FOLDER]     FOLDER (default: build/demo) takes data, programs and logs
set -euo pipefail
# shellcheck source=setup.sh
source "$(dirname "$0")/setup.sh"

folder=${1:-build/demo}
sluicec=build/bin/sluicec

install_demo_data() {
  mkdir -p "$folder"
  [ -f "$folder/digits.onnx" ] && return
  say "fetching scikit-learn (it carries the digits) into $deps/venv-demo"
  [ -x "$deps/venv-demo/bin/python" ] || python3 -m venv "$deps/venv-demo"
  "$deps/venv-demo/bin/pip" install -q scikit-learn onnx
  "$deps/venv-demo/bin/python" tools/python/digits.py "$folder"
}

# Value of a key in the last line of a JSONL log that holds it.
field() { grep -o "\"$2\":[0-9.e+-]*" "$1" | tail -n 1 | cut -d: -f2; }

train_digits() {
  say "compiling digits.onnx for 50 % of the memory that keeping everything needs"
  "$sluicec" "$folder/digits.onnx" --batch=64 --init=kaiming --memory-budget=50% -o "$folder/digits"
  "$folder/digits" --data "$folder/train" --evaluate "$folder/test" --epochs 12 --lr 0.05 --shuffle --log "$folder/digits.jsonl"
  local accuracy
  accuracy=$(field "$folder/digits.jsonl" accuracy)
  say "accuracy on images held out: $accuracy"
  awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.97) }' || { say "error: expected 0.97 at least"; exit 1; }
}

train_resnet50() {
  say "compiling ONNX's light_resnet50.onnx, batch 16, for 50 %"
  "$sluicec" "$onnx_prefix/test-data/light/light_resnet50.onnx" --init=kaiming --batch=16 --memory-budget=50% -o "$folder/resnet50"
  "$folder/resnet50" --data synthetic --steps 4 --lr 0.01 --log "$folder/resnet50.jsonl"
}

install_packages
install_onnx
build release
install_demo_data
train_digits
train_resnet50
say "done; the programs are $folder/digits and $folder/resnet50, their sources: sluicec ... --emit=source"
