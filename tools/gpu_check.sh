#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks and measures the cuda target on a machine with a GPU that has neither MLIR nor a network.
#
#   tools/gpu_check.sh pack [-o FILE.tar.xz] [--prebuilt ARCHITECTURE]
#                                                here, after tools/setup.sh: emits the programs, packs all that the check needs;
#                                                --prebuilt 90: with what the stage `first` runs as programs for such GPUs
#   tar xf FILE.tar.xz && sluice_gpu_check/gpu_check.sh first    there: what to know first, in nine minutes;
#                                                python3 -m tarfile -e FILE.tar.xz unpacks it where there is no xz
#   sluice_gpu_check/gpu_check.sh run            there: everything, as long as it takes
#   sluice_gpu_check/gpu_check.sh STAGE          one stage: first, build, conformance, train, measure, peers, sanitize, report
#
# There: CUDA and cuDNN (also as Python packages), for the peers PyTorch with torchvision; a C++ compiler, CMake, Ninja or make, and
# nvcc for all that is not prebuilt. A stage ends after SLUICE_STAGE_SECONDS (480; first: 540): what is left then is done by the next
# call (exit status 75 says that there is something left). Finished items are never repeated: one file an item, and one *.failed for
# each that failed; remove it to try again. They lie, with what is built, in SLUICE_CHECK_WORK (default: sluice_gpu_check in $TMPDIR or /tmp).
#
# For machines that are lent: where OUT is set, $OUT/results.tgz is written after every item, and holds all results so far. As
# results.tgz beside this script it is read back, so that a bare machine goes on where another one ended.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=${SLUICE_CHECK_WORK:-${TMPDIR:-/tmp}/sluice_gpu_check}
python=${PYTHON:-python3}
results=$work/results

say() { printf 'gpu_check: %s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; } # with a line that begins with CUDA

# All results so far, for whoever lent this machine; never half an archive.
save() {
  [ -z "${OUT:-}" ] || { tar -C "$work" -czf "$OUT/results.tgz.part" results && mv "$OUT/results.tgz.part" "$OUT/results.tgz"; }
}

# The results of this very pack: those of a call before, and those that came back from another machine.
restore() {
  mkdir -p "$results"
  [ ! -f "$results/commit" ] || cmp -s "$here/commit" "$results/commit" || { say "results of another pack go"; rm -rf "$work"; mkdir -p "$results"; }
  cp "$here/commit" "$results/commit"
  [ -f "$here/results.tgz" ] || return 0
  if tar -xzOf "$here/results.tgz" results/commit 2>/dev/null | cmp -s - "$here/commit"; then
    tar -C "$work" -xzf "$here/results.tgz" --skip-old-files
  else
    say "results.tgz is of another pack: left out"
  fi
}

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
    say "$(basename "$result") after $SECONDS s"
  elif [ $status = 124 ] && [ "$left" -lt $((limit - 30)) ]; then
    unfinished=1
  else
    { echo "status $status of: $*"; grep -v '^ ' "$result.log" | tail -n 5; tail -n 5 "$result.part"; } >"$result.failed"
    failures=$((failures + 1))
    say "failed: $(basename "$result"): $(tail -n 1 "$result.log")"
  fi
  save
}

need_device() {
  command -v nvidia-smi >/dev/null || die "CUDA device not found: this machine has no nvidia-smi, the stage needs 1 GPU"
  nvidia-smi --query-gpu=name --format=csv,noheader >/dev/null 2>&1 || die "CUDA device not found: nvidia-smi says: $(nvidia-smi 2>&1 | head -n 1)"
}

# What was built on this machine, else what came along.
path_of() { if [ -x "$work/build/$1/$1" ]; then echo "$work/build/$1/$1"; else echo "$here/bin/$1/$1"; fi; }
exists() { [ -x "$(path_of "$1")" ]; }

# A program that is there and trains one step on this device; what it says otherwise begins with CUDA.
need_programs() {
  need_device
  exists check_mlp || die "CUDA programs are not built yet: run the stage build first"
  "$(path_of check_mlp)" --data "$here/data/mlp" --steps 1 >/dev/null 2>"$results/device.log" || die "$(tail -n 1 "$results/device.log")"
}

# Folders of the newest cuDNN, and of cuBLASLt and NVRTC, before all others: an older one elsewhere does not win.
find_libraries() {
  local found
  export PATH=$PATH:${CUDA_PATH:-/usr/local/cuda}/bin
  found=$("$python" "$here/gpu_libraries.py" "$here"/bin/*/check_mlp 2>"$results/libraries.log") || die "$(tail -n 1 "$results/libraries.log")"
  export CUDNN_PATH=${found%%:*} LD_LIBRARY_PATH=${found#*:}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

build_targets() { # target...: builds what this machine cannot run as it came
  local tool generator=Ninja
  command -v nvcc >/dev/null || die "CUDA compiler not found: no nvcc in PATH or ${CUDA_PATH:-/usr/local/cuda}/bin"
  command -v cmake >/dev/null || die "CUDA programs cannot be built: there is no cmake"
  command -v ninja >/dev/null || generator="Unix Makefiles"
  tool=$([ "$generator" = Ninja ] && echo ninja || echo make)
  command -v "$tool" >/dev/null || die "CUDA programs cannot be built: there is neither ninja nor make"
  mkdir -p "$work/build"
  cmake -G "$generator" -S "$here" -B "$work/build" >"$results/configure.log" 2>&1 ||
    die "CUDA programs cannot be configured: $(grep -A 3 -m 1 'CMake Error' "$results/configure.log" | tail -n +2 | tr -s ' \n' ' ')"
  timeout $((limit - SECONDS)) cmake --build "$work/build" -j"$(nproc)" --target "$@" -- -k"$([ $tool = ninja ] && echo 0)" >"$results/build.log" 2>&1
  case $? in
    0) return 0 ;;
    124) unfinished=1 ;;
    *) die "CUDA programs cannot be built: $(grep -m 1 -iE 'error|fatal' "$results/build.log")" ;;
  esac
}

stage_build() { build_targets all; }

# Binaries that came along are used where they train a step; where they do not, they are built.
prepare_first() {
  local wanted=(cuda_conformance) missing=() program
  for program in check_mlp "${first_programs[@]}"; do [ ! -d "$here/programs/$program" ] || wanted+=("$program"); done
  if [ -x "$here/bin/check_mlp/check_mlp" ] && ! "$here/bin/check_mlp/check_mlp" --data "$here/data/mlp" --steps 1 >/dev/null 2>"$results/prebuilt.log"; then
    say "programs that came along do not run here: $(tail -n 1 "$results/prebuilt.log")"
    missing=("${wanted[@]}")
  else
    for program in "${wanted[@]}"; do exists "$program" || missing+=("$program"); done
  fi
  [ ${#missing[@]} = 0 ] || { say "building ${missing[*]}"; build_targets "${missing[@]}"; }
}

first_programs=(check_resnet_bf16 check_resnet_bf16_planned resnet50_bf16_keep gpt2_bf16_keep gpt2_dropout_bf16_keep resnet50_bf16_60act gpt2_bf16_60act check_resnet check_resnet_planned check_resnet_zvc check_resnet_bf16_zvc check_resnet_fp16 check_resnet_fp16_planned check_gpt_bf16 check_gpt_bf16_planned)

# What decides how one goes on, most of it first: whether programs run at all and plans are bit-equal, how long steps are and PyTorch's, what a
# budget costs; then where the time goes, whether each kernel computes what it should, and the rest.
stage_first() {
  local program variant
  need_device
  item machine.txt sh -c "nvidia-smi; nvcc --version; '$python' -c 'import torch; print(torch.__version__, torch.version.cuda, torch.backends.cudnn.version())'; lscpu; free -m; true"
  [ "$unfinished" = 1 ] || prepare_first
  [ "$unfinished" = 0 ] || return 0
  need_programs
  for program in "${first_programs[@]}"; do exists "$program" || say "$program is not in this pack"; done
  for program in check_resnet_bf16 check_resnet_bf16_planned; do ! exists "$program" || train_check "$program"; done
  for program in {resnet50,gpt2,gpt2_dropout}_bf16_keep; do ! exists "$program" || measure "$program" 100; done
  for variant in eager compile; do first_peers "$variant"; done
  [ "$unfinished" = 1 ] || say "what decides is done after $SECONDS s"
  for program in {resnet50,gpt2}_bf16_60act; do ! exists "$program" || measure "$program" 100; done
  for program in {resnet50,gpt2}_bf16_keep; do ! exists "$program" || profile "$program"; done
  stage_conformance
  for program in "${first_programs[@]}"; do [[ $program != check_* ]] || ! exists "$program" || train_check "$program"; done
  first_peers max-autotune
}

first_peers() { # variant
  item "peer_resnet50_$1-amp.json" "$python" "$here/gpu_peers.py" resnet50 256 "$1-amp"
  ! exists gpt2_bf16_keep || item "peer_gpt2_$1-amp.json" "$python" "$here/gpu_peers.py" gpt2 32 "$1-amp"
  ! exists gpt2_dropout_bf16_keep || item "peer_gpt2-dropout_$1-amp.json" "$python" "$here/gpu_peers.py" gpt2-dropout 32 "$1-amp"
}

# In processes beside each other: most of the time is the libraries' compilation of engines.
stage_conformance() {
  need_programs
  item conformance.txt "$here/gpu_conformance.sh" "$(path_of cuda_conformance)" "$results/conformance"
}

trained() { # result, program, flags...: its log
  local result=$1 program=$2
  shift 2
  item "$result" sh -c "'$(path_of "$program")' $* --log '$results/$result.log.jsonl' >&2 && cat '$results/$result.log.jsonl'"
}

train_check() { # program
  local data=${1#check_} rate="--steps 5 --lr 0.01 --momentum 0.9 --weight-decay 0.0001"
  data=${data%_planned} data=${data%_zvc} data=${data%_inverted} data=${data%_bf16} data=$here/data/${data%_fp16}
  trained "$1.jsonl" "$1" --data "'$data'" "$rate"
  trained "$1.no-graph.jsonl" "$1" --data "'$data'" "$rate" --no-graph
}

measure() { # program, steps
  trained "$1.measure.jsonl" "$1" --data synthetic --steps "$2"
}

profile() { # program
  item "$1.profile.json" sh -c "'$(path_of "$1")' --data synthetic --steps 5 --profile-out '$results/$1.profile' >&2 && cat '$results/$1.profile'"
}

stage_train() {
  need_programs
  local program
  for program in "$here"/programs/check_*; do train_check "$(basename "$program")"; done
}

# First what most is compared with: a machine may be lent for less time than all takes.
stage_measure() {
  need_programs
  local program
  for program in "$here"/programs/resnet50_{bf16,tf32}_* "$here"/programs/*_bf16_* "$here"/programs/*; do
    [[ -d $program && $(basename "$program") != check_* ]] || continue
    measure "$(basename "$program")" 60
    profile "$(basename "$program")"
  done
}

stage_peers() {
  need_device
  "$python" -c 'import torch, torchvision' 2>"$results/torch.log" || die "CUDA peers need PyTorch with torchvision: $(tail -n 1 "$results/torch.log")"
  local model variant
  item peer_links.json "$python" "$here/gpu_peers.py" links
  for model in resnet50:256 gpt2:32 gpt2-dropout:32 resnet152:64 vgg16:64 densenet121:128 vit_b_16:64; do
    for variant in {eager,compile,max-autotune}-{tf32,amp} checkpoint-{tf32,amp} save-on-cpu-{tf32,amp} budget-{0.7,0.5,0.3}-{tf32,amp}; do
      item "peer_${model%:*}_$variant.json" "$python" "$here/gpu_peers.py" "${model%:*}" "${model#*:}" "$variant"
    done
  done
}

# memcheck and racecheck take long: the conformance set goes through them in parts.
stage_sanitize() {
  need_programs
  if ! command -v compute-sanitizer >/dev/null; then say "there is no compute-sanitizer: left out"; return 0; fi
  local tool part parts=12
  for tool in memcheck racecheck; do
    item "$tool.step.txt" compute-sanitizer --tool "$tool" --error-exitcode 9 "$(path_of check_resnet_planned)" --data "$here/data/resnet" --steps 1
    for ((part = 0; part < parts; part++)); do
      item "$tool.$part.txt" env GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$part \
        compute-sanitizer --tool "$tool" --error-exitcode 9 "$(path_of cuda_conformance)" --gtest_filter='-*turned*:*windows_in_padding*'
    done
  done
}

stage_report() {
  "$python" "$here/gpu_report.py" "$results" "$here" >"$results/results.json.part" && mv "$results/results.json.part" "$results/results.json" &&
    say "$results/results.json is written" && save
}

run_stage() {
  limit=${SLUICE_STAGE_SECONDS:-$([ "$1" = first ] && echo 540 || echo 480)} unfinished=0 failures=0 SECONDS=0
  restore
  trap save EXIT
  trap 'exit 143' TERM
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
  for stage in first build conformance train measure peers sanitize report; do
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
  first | build | conformance | train | measure | peers | sanitize | report) (run_stage "$1") ;;
  run) run_all ;;
  *) sed -n '3,22p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
