#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks and measures the cuda target on a machine with a GPU that has neither MLIR nor a network.
#
#   tools/gpu_check.sh pack [-o FILE.tar.gz]     here, after tools/setup.sh: emits the programs, packs all that the check needs
#   tar xf FILE.tar.gz && sluice_gpu_check/gpu_check.sh run      there: needs CMake, a C++ compiler, CUDA, cuDNN (also as the
#                                                Python package nvidia-cudnn) and, for the peers, PyTorch with torchvision
#   sluice_gpu_check/gpu_check.sh STAGE          one stage: build, conformance, train, measure, peers, sanitize, report
#
# A stage takes 8 minutes at most: what is left then is done by the next call (exit status 75 says that there is something left).
# Finished items are never repeated: results/ holds one file an item, and one *.failed for each that failed; remove it to try again.
# `run` calls the stages in order until none is left and ends with results.json: machine, versions, commit and every figure.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
limit=${SLUICE_STAGE_SECONDS:-480}
python=${PYTHON:-python3}
results=$here/results

say() { printf 'gpu_check: %s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; } # with a line that begins with CUDA

# Its output becomes results/NAME when it succeeds. One that a whole stage is too short for has failed.
item() { # name, command...
  local result=$results/$1 left=$((limit - SECONDS)) status
  shift
  if [ -e "$result" ] || [ -e "$result.failed" ]; then return 0; fi
  if [ "$left" -le 5 ]; then unfinished=1; return 0; fi
  timeout "$left" "$@" >"$result.part" 2>"$result.log"
  status=$?
  if [ $status = 0 ]; then
    mv "$result.part" "$result"
  elif [ $status = 124 ] && [ "$left" -lt $((limit - 30)) ]; then
    unfinished=1
  else
    { echo "status $status of: $*"; grep -v '^ ' "$result.log" | tail -n 5; tail -n 5 "$result.part"; } >"$result.failed"
    failures=$((failures + 1))
    say "failed: $(basename "$result"): $(tail -n 1 "$result.log")"
  fi
}

need_device() {
  command -v nvidia-smi >/dev/null || die "CUDA device not found: this machine has no nvidia-smi, the stage needs 1 GPU"
  nvidia-smi --query-gpu=name --format=csv,noheader >/dev/null 2>&1 || die "CUDA device not found: nvidia-smi says: $(nvidia-smi 2>&1 | head -n 1)"
}

# A program that is there and trains one step on this device; what it says otherwise begins with CUDA.
need_programs() {
  need_device
  [ -e "$results/build" ] || die "CUDA programs are not built yet: run the stage build first"
  build/check_mlp/check_mlp --data data/mlp --steps 1 >/dev/null 2>"$results/device.log" || die "$(tail -n 1 "$results/device.log")"
}

# cuDNN from its Python package where the system has none.
find_libraries() {
  export PATH=$PATH:${CUDA_PATH:-/usr/local/cuda}/bin
  if [ -z "${CUDNN_PATH:-}" ]; then
    if compgen -G "/usr/include/cudnn*.h" >/dev/null || compgen -G "/usr/include/*/cudnn*.h" >/dev/null ||
      compgen -G "${CUDA_PATH:-/usr/local/cuda}/include/cudnn.h" >/dev/null; then return 0; fi
    CUDNN_PATH=$("$python" -c 'import nvidia.cudnn; print(list(nvidia.cudnn.__path__)[0])' 2>/dev/null) ||
      die "CUDA cuDNN not found: no cudnn.h in /usr/include or ${CUDA_PATH:-/usr/local/cuda}/include, no Python package nvidia-cudnn-cu13; set CUDNN_PATH"
    export CUDNN_PATH
  fi
  export LD_LIBRARY_PATH=$CUDNN_PATH/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

stage_build() {
  command -v nvcc >/dev/null || die "CUDA compiler not found: no nvcc in PATH or ${CUDA_PATH:-/usr/local/cuda}/bin"
  mkdir -p build
  cmake -G "Unix Makefiles" -S . -B build >build/configure.log 2>&1 || die "CUDA programs cannot be configured: $(grep -A 3 -m 1 'CMake Error' build/configure.log | tail -n +2 | tr -s ' \n' ' ')"
  timeout "$limit" cmake --build build -j"$(nproc)" -- -k >build/build.log 2>&1
  case $? in
    0) touch "$results/build" ;;
    124) unfinished=1 ;;
    *) die "CUDA programs cannot be built: $(grep -m 1 -iE 'error|fatal' build/build.log)" ;;
  esac
}

stage_conformance() {
  need_programs
  item conformance.txt build/cuda_conformance --gtest_brief=0
}

trained() { # result, program, flags...: its log
  local result=$1 program=$2
  shift 2
  item "$result" sh -c "build/$program/$program $* --log results/$result.log.jsonl >&2 && cat results/$result.log.jsonl"
}

stage_train() {
  need_programs
  local program data rate=(--steps 5 --lr 0.01 --momentum 0.9 --weight-decay 0.0001)
  for program in programs/check_*; do
    program=${program#programs/}
    data=${program#check_} && data=${data%_planned} && data=${data%_inverted} && data=data/${data%_bf16}
    trained "$program.jsonl" "$program" --data "$data" "${rate[@]}"
    trained "$program.no-graph.jsonl" "$program" --data "$data" "${rate[@]}" --no-graph
  done
}

# First what most is compared with: a machine may be lent for less time than all takes.
stage_measure() {
  need_programs
  local program
  for program in programs/resnet50_{bf16,tf32}_* programs/*_bf16_* programs/*; do
    program=${program#programs/}
    [[ -d programs/$program && $program != check_* ]] || continue
    trained "$program.measure.jsonl" "$program" --data synthetic --steps 60
    item "$program.profile.json" sh -c "build/$program/$program --data synthetic --steps 5 --profile-out results/$program.profile >&2 && cat results/$program.profile"
  done
}

stage_peers() {
  need_device
  "$python" -c 'import torch, torchvision' 2>"$results/torch.log" || die "CUDA peers need PyTorch with torchvision: $(tail -n 1 "$results/torch.log")"
  local model variant
  item peer_links.json "$python" gpu_peers.py links
  for model in resnet50:256 resnet152:64 vgg16:64 densenet121:128; do
    for variant in eager-tf32 eager-amp compile-tf32 compile-amp checkpoint-{tf32,amp} save-on-cpu-{tf32,amp} budget-{0.7,0.5,0.3}-{tf32,amp}; do
      item "peer_${model%:*}_$variant.json" "$python" gpu_peers.py "${model%:*}" "${model#*:}" "$variant"
    done
  done
}

# memcheck and racecheck take long: the conformance set goes through them in parts.
stage_sanitize() {
  need_programs
  if ! command -v compute-sanitizer >/dev/null; then say "there is no compute-sanitizer: left out"; return 0; fi
  local tool part parts=12
  for tool in memcheck racecheck; do
    item "$tool.step.txt" compute-sanitizer --tool "$tool" --error-exitcode 9 build/check_resnet_planned/check_resnet_planned --data data/resnet --steps 1
    for ((part = 0; part < parts; part++)); do
      item "$tool.$part.txt" env GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$part \
        compute-sanitizer --tool "$tool" --error-exitcode 9 build/cuda_conformance --gtest_filter='-*turned*:*windows_in_padding*'
    done
  done
}

stage_report() {
  "$python" gpu_report.py "$results" commit >results.json.part && mv results.json.part results.json && say "results.json is written"
}

run_stage() {
  cd "$here" || exit 1
  unfinished=0 failures=0 SECONDS=0
  mkdir -p "$results"
  [ "$1" = report ] || find_libraries
  "stage_$1" || return 1
  if [ "$unfinished" = 1 ]; then
    say "$1: its $limit seconds are over; the same call goes on"
    return 75
  fi
  [ "$failures" = 0 ]
}

# Without programs there is nothing to go on with; everything else is reported, however it went.
run_all() {
  local stage status worst=0
  for stage in build conformance train measure peers sanitize report; do
    status=75
    while [ $status = 75 ]; do
      say "$stage"
      (run_stage "$stage")
      status=$?
    done
    [ $status = 0 ] || worst=1
    [ $status = 0 ] || [ $stage != build ] || return 1
  done
  return $worst
}

case ${1:-} in
  pack) shift; exec "$here/bench/gpu_pack.sh" "$@" ;;
  build | conformance | train | measure | peers | sanitize | report) run_stage "$1" ;;
  run) run_all ;;
  *) sed -n '3,14p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
