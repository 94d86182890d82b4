#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks and measures the cuda target on a machine with a GPU that has neither MLIR nor a network.
#
#   tools/gpu_check.sh pack [-o FILE.tar.gz]     here, after tools/setup.sh: emits the programs, packs all that the check needs
#   tar xf FILE.tar.gz && sluice_gpu_check/gpu_check.sh run      there: needs CMake, a C++ compiler, CUDA, cuDNN (also as the
#                                                Python package nvidia-cudnn) and, for the peers, PyTorch with torchvision
#   sluice_gpu_check/gpu_check.sh STAGE          one stage: build, conformance, train, measure, peers, report
#
# A stage takes 8 minutes at most: what is left then is done by the next call, finished items are never repeated (results/ holds
# one file an item). `run` calls the stages in order and ends with results.json: machine, versions, commit and every figure.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
limit=${SLUICE_STAGE_SECONDS:-480}
python=${PYTHON:-python3}

say() { printf 'gpu_check: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }

# ---- pack: on the machine with the compiler.

checked=(mlp:8 resnet:8 mobile:8 densenet:8 unet:4 vgg:8 lrn:8 gates:8)          # tiny model:batch, against the host target
measured=(resnet50:256 resnet152:64 vgg16:64 densenet121:128)                    # torchvision model:batch at 224

emit() { # name, model, flags...: programs/NAME/{program.cu,NAME.safetensors}
  local name=$1 model=$2
  shift 2
  rm -rf "$work/project" && mkdir -p "$work/project" "$pack/programs/$name"
  build/bin/sluicec "$model" --target=cuda --emit=project -o "$work/project/$name" "$@" 2>"$work/error" ||
    { say "left out $name: $(tail -n 1 "$work/error")"; rm -rf "$pack/programs/$name"; return 1; }
  cp "$work/project/$name/program.cu" "$pack/programs/$name/"
  find "$work/project/$name" -maxdepth 1 -name '*.safetensors' -exec cp {} "$pack/programs/$name/" \;
  if [ ! -d "$pack/runtime" ]; then cp -r "$work/project/$name/runtime" "$work/project/$name/third_party" "$pack/"; fi
}

emit_checked() {
  local entry model batch rate=(--steps 5 --lr 0.01 --momentum 0.9 --weight-decay 0.0001)
  for entry in "${checked[@]}"; do
    model=${entry%:*} batch=${entry#*:}
    local file=test/models/tiny/$model/model.onnx
    emit "check_$model" "$file" "--batch=$batch" --strategy=keep --workspace-limit=1MiB || continue
    local smallest
    smallest=$(build/bin/sluicec "$file" "--batch=$batch" --target=cuda --workspace-limit=1MiB --memory-budget=256 \
      --emit=source -o "$work/none" 2>&1 | sed -n 's/^smallest feasible budget: \([0-9]*\) bytes/\1/p')
    emit "check_${model}_planned" "$file" "--batch=$batch" --workspace-limit=1MiB "--memory-budget=$smallest"
    mkdir -p "$pack/data/$model"
    cp test/models/tiny/"$model"/data/*.npy "$pack/data/$model/"
    build/bin/sluicec "$file" "--batch=$batch" -o "$work/host" && "$work/host" --data "$pack/data/$model" "${rate[@]}" \
      --log "$pack/data/$model/host.jsonl" >/dev/null
  done
}

emit_measured() {
  local entry model batch budget precision file
  for entry in "${measured[@]}"; do
    model=${entry%:*} batch=${entry#*:}
    file=${SLUICE_MODELS:-$HOME/.cache/sluice/models}/$model-224/model.onnx
    [ -f "$file" ] || { say "left out $model: no $file (test/models/make_torchvision.py writes it)"; continue; }
    for precision in fp32 tf32; do
      emit "${model}_${precision}_keep" "$file" "--batch=$batch" --init=kaiming --precision=$precision --strategy=keep
    done
    for budget in 80 60 40; do
      emit "${model}_tf32_$budget" "$file" "--batch=$batch" --init=kaiming --precision=tf32 "--memory-budget=$budget%"
    done
  done
}

make_pack() {
  local out=sluice_gpu_check.tar.gz
  [ "${1:-}" = -o ] && out=$2
  cd "$here/.." || exit 1
  work=$(mktemp -d) pack=$work/sluice_gpu_check
  mkdir -p "$pack/tests"
  emit_checked
  emit_measured
  cp -r test/unit/runtime/Harness.h test/unit/runtime/kernels_*.cpp "$pack/tests/"
  mkdir -p "$pack/googletest" && cp -r /usr/src/googletest/googletest/{include,src} "$pack/googletest/"
  cp -r /usr/src/googletest/googlemock/{include,src} "$pack/googletest/"
  cp /usr/share/doc/googletest/copyright "$pack/googletest/LICENSE" 2>/dev/null
  cp tools/gpu_check.sh tools/bench/gpu_peers.py tools/bench/gpu_report.py "$pack/"
  cp tools/bench/gpu_check.cmake "$pack/CMakeLists.txt"
  { git rev-parse HEAD; git status --porcelain | head -n 1; } >"$pack/commit" 2>/dev/null
  [ -d "$pack/runtime" ] || die "no program was emitted: there is nothing to pack"
  tar -C "$work" -czf "$work/pack.tar.gz" sluice_gpu_check
  mv "$work/pack.tar.gz" "$out"
  say "$out: $(stat -c %s "$out") bytes, $(find "$pack/programs" -name program.cu | wc -l) programs"
  rm -rf "$work"
}

# ---- stages: on the machine with the GPU, in the unpacked folder.

# Runs `do_ITEM`-like commands until the stage's time is over; results/NAME marks what is done.
item() { # result file, command...: its output becomes the result when it succeeds
  local result=$results/$1 left=$((limit - SECONDS))
  shift
  [ -e "$result" ] && return 0
  [ "$left" -gt 5 ] || { unfinished=1; return 1; }
  if timeout "$left" "$@" >"$result.part" 2>"$result.log"; then
    mv "$result.part" "$result"
  elif [ $? -eq 124 ]; then
    unfinished=1
    return 1
  else
    { echo "failed: $*"; tail -n 5 "$result.log"; } >"$result.failed"
    say "failed: $(basename "$result"): $(tail -n 1 "$result.log")"
  fi
}

find_libraries() { # cuDNN from its Python package where the system has none
  local package
  package=$("$python" -c 'import nvidia.cudnn, os; print(list(nvidia.cudnn.__path__)[0])' 2>/dev/null) || return 0
  [ -n "${CUDNN_PATH:-}" ] || [ -e /usr/include/cudnn.h ] || [ -e "${CUDA_PATH:-/usr/local/cuda}/include/cudnn.h" ] || export CUDNN_PATH=$package
  export LD_LIBRARY_PATH=$package/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

stage_build() {
  mkdir -p build
  cmake -S . -B build >build/configure.log 2>&1 || die "$(tail -n 3 build/configure.log)"
  timeout "$limit" cmake --build build -j"$(nproc)" >build/build.log 2>&1
  case $? in
    0) touch results/build ;;
    124) unfinished=1 ;;
    *) die "build failed: $(grep -m 3 -i error build/build.log)" ;;
  esac
}

stage_conformance() {
  item conformance.txt build/cuda_conformance --gtest_brief=0
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
      item "$tool.txt" compute-sanitizer --tool "$tool" --error-exitcode 9 build/cuda_conformance --gtest_filter='-*turned*:*windows_in_padding*'
    done
  fi
}

stage_train() {
  local program data rate=(--steps 5 --lr 0.01 --momentum 0.9 --weight-decay 0.0001)
  for program in programs/check_*; do
    program=${program#programs/}
    data=${program#check_} && data=data/${data%_planned}
    item "$program.jsonl" sh -c "build/$program/$program --data $data ${rate[*]} --log results/$program.log.jsonl >&2 && cat results/$program.log.jsonl"
    item "$program.no-graph.jsonl" sh -c "build/$program/$program --data $data ${rate[*]} --no-graph --log results/$program.ng.jsonl >&2 && cat results/$program.ng.jsonl"
  done
}

stage_measure() {
  local program
  for program in programs/*; do
    program=${program#programs/}
    [[ $program == check_* ]] && continue
    item "$program.measure.jsonl" sh -c "build/$program/$program --data synthetic --steps 60 --log results/$program.log.jsonl >&2 && cat results/$program.log.jsonl"
    item "$program.profile.json" sh -c "build/$program/$program --data synthetic --steps 5 --profile-out results/$program.profile >&2 && cat results/$program.profile"
  done
}

stage_peers() {
  local model
  for model in resnet50:256 resnet152:64 vgg16:64 densenet121:128; do
    for variant in eager-tf32 eager-amp compile-tf32 compile-amp checkpoint-amp save-on-cpu-amp budget-0.7-amp budget-0.5-amp budget-0.3-amp; do
      item "peer_${model%:*}_$variant.json" "$python" gpu_peers.py "${model%:*}" "${model#*:}" "$variant"
    done
  done
}

stage_report() { "$python" gpu_report.py "$results" commit >results.json && say "results.json is written"; }

run_stage() {
  local stage=$1
  cd "$here" || exit 1
  results=$here/results unfinished=0 SECONDS=0
  mkdir -p "$results"
  command -v nvidia-smi >/dev/null || die "CUDA device not found: there is no nvidia-smi"
  find_libraries
  "stage_$stage"
  [ "$unfinished" = 0 ] && return 0
  say "$stage: its $limit seconds are over; the same call goes on"
  return 75
}

case ${1:-} in
  pack) shift; make_pack "$@" ;;
  build | conformance | train | measure | peers | report) run_stage "$1" ;;
  run)
    for stage in build conformance train measure peers report; do
      status=75
      while [ $status = 75 ]; do
        say "$stage"
        (run_stage "$stage")
        status=$?
      done
      [ $status = 0 ] || exit $status
    done
    ;;
  *) sed -n '3,13p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
