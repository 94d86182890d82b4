#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the program that test/codegen/golden.test compares with, compiles and trains: test/codegen/golden/vgg.cpp, or vgg.cpp in the folder given.
# Its kernels are those of x86-64-v2, which every processor has.
set -euo pipefail
golden=$(dirname "$(realpath "$0")")
root=$golden/../../..
into=$(realpath "${1:-$golden}")
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cp "$root/test/models/tiny/vgg/model.onnx" "$work"
cd "$work" # the program holds its command line
SLUICE_DEVICE=host PATH=$PATH:$root/build/bin \
  sluicec model.onnx --batch=8 --cpu=x86-64-v2 --threads=2 --strategy=greedy --memory-budget=75%act --host-budget=unlimited --emit=source -o vgg.cpp
mv vgg.cpp "$into"
