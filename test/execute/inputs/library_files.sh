#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes what test/models/library_files.py compares: images, the run of a program, a library with the formats of files and one without, all by the sluicec of the PATH.
#
#   test/execute/inputs/library_files.sh FOLDER
set -euo pipefail
root=$(realpath "$(dirname "$0")/../../..") folder=$1
/usr/bin/python3 "$root/test/models/class_folders.py" make "$folder"
# The second batch has a file that is no image.
cp -r "$folder/all" "$folder/bad"
cp "$0" "$folder/bad/b-class/1broken.png"
rm "$folder/bad/b-class/7.png"
compile=(sluicec "$root/test/models/tiny/vgg/model.onnx" --batch=8)
"${compile[@]}" -o "$folder/program"
"$folder/program" --data "imagefolder:$folder/all" --shuffle --seed 5 --augment 'resize,size=16;random-crop,padding=2;flip' --mean 0.5 --std 0.25 --lr 0.05 --epochs 2 \
  --evaluate "imagefolder:$folder/whole" --metrics accuracy --predict "imagefolder:$folder/whole" --output "$folder/predicted.npy" --log "$folder/log.jsonl" \
  --export "$folder/trained.safetensors" --checkpoint "$folder/run"
"${compile[@]}" --emit=library --data-formats -o "$folder/files"
"${compile[@]}" --emit=library -o "$folder/plain"
