#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/gpu_check.sh pack: emits the programs of the GPU check and packs them with the conformance set and the stages.
#
#   tools/bench/gpu_pack.sh [-o FILE.tar.xz] [--prebuilt ARCHITECTURE]
#
# --prebuilt 90: what the stage `first` runs is built here for such GPUs, so that
# a machine that has no compiler, or is lent for minutes, can run it; without debug information, data libraries linked in.
# Programs carry no weights but the tiny ones: theirs are drawn from the seed. What a model or a budget does not allow is left out and said.
# What travels to a lent machine, the pack and the files of this repository, may have 60 MiB together: more ends with status 1.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
export SLUICE_DEVICE=h200 # plans do not depend on a GPU of the machine that packs

say() { printf 'gpu_check: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }

checked=(mlp:8 resnet:8 mobile:8 densenet:8 unet:4 vgg:8 lrn:8 gates:8:mse leaky:8 reversible:8 vit:8 gpt:8:token-cross-entropy) # tiny model:batch[:loss], in fp32 and bf16, resnet in fp16 as well and with copies that leave zeros out, against the host target
inverted=(leaky:8:hascoet,fp16=0 reversible:8:mixed,offload=0)                   # tiny model:batch:strategy, with what can be rebuilt rebuilt, in fp32
measured=(resnet50:256 resnet152:64 vgg16:64 densenet121:128 vit_b_16:64)        # torchvision model:batch at 224
budgets=(80% 60% 60%act 40%)
largest=$((60 << 20))

emit() { # name, model, flags...: programs/NAME/{program.cu,NAME.safetensors}
  local name=$1 model=$2
  shift 2
  rm -rf "$work/project" && mkdir -p "$work/project" "$pack/programs/$name"
  if ! build/bin/sluicec "$model" --target=cuda --emit=project -o "$work/project/$name" "$@" 2>"$work/error"; then
    say "left out $name: $(tail -n 1 "$work/error")"
    rm -rf "$pack/programs/$name"
    return 1
  fi
  cp "$work/project/$name/program.cu" "$pack/programs/$name/"
  find "$work/project/$name" -maxdepth 1 -name '*.safetensors' -exec cp {} "$pack/programs/$name/" \;
  [ -d "$pack/runtime" ] || cp -r "$work/project/$name/runtime" "$work/project/$name/third_party" "$pack/"
}

emit_checked() {
  local entry model batch loss file precision name smallest rate=(--steps 5 --lr 0.01 --momentum 0.9 --weight-decay 0.0001)
  for entry in "${checked[@]}"; do
    IFS=: read -r model batch loss <<<"$entry"
    file=test/models/tiny/$model/model.onnx
    local flags=("--batch=$batch" ${loss:+"--loss=$loss"})
    for precision in fp32 bf16 fp16; do
      [ $precision != fp16 ] || [ "$model" = resnet ] || continue
      local cuda=(--workspace-limit=1MiB "--precision=$precision")
      name=check_$model && [ $precision = fp32 ] || name=check_${model}_$precision
      emit "$name" "$file" "${flags[@]}" "${cuda[@]}" --strategy=keep || continue
      smallest=$(build/bin/sluicec "$file" "${flags[@]}" "${cuda[@]}" --target=cuda --memory-budget=256 --emit=source -o "$work/none" 2>&1 |
        sed -n 's/^smallest feasible budget: \([0-9]*\) bytes/\1/p')
      emit "${name}_planned" "$file" "${flags[@]}" "${cuda[@]}" "--memory-budget=$smallest"
      [ "$model" != resnet ] || emit "${name}_zvc" "$file" "${flags[@]}" "${cuda[@]}" --strategy=vdnn-all,codec=zvc
    done
    mkdir -p "$pack/data/$model"
    cp test/models/tiny/"$model"/data/*.npy "$pack/data/$model/"
    build/bin/sluicec "$file" "${flags[@]}" -o "$work/host" &&
      "$work/host" --data "$pack/data/$model" "${rate[@]}" --log "$pack/data/$model/host.jsonl" >/dev/null ||
      die "the host target does not train $model, which the cuda target is to be compared with"
  done
}

# At the smallest budget, against the host target that keeps everything.
emit_inverted() {
  local entry model batch strategy file smallest
  for entry in "${inverted[@]}"; do
    IFS=: read -r model batch strategy <<<"$entry"
    file=test/models/tiny/$model/model.onnx
    local flags=("--batch=$batch" --workspace-limit=1MiB "--strategy=$strategy" --allow-lossy=invert)
    smallest=$(build/bin/sluicec "$file" "${flags[@]}" --target=cuda --memory-budget=256 --emit=source -o "$work/none" 2>&1 |
      sed -n 's/^smallest feasible budget: \([0-9]*\) bytes/\1/p')
    emit "check_${model}_inverted" "$file" "${flags[@]}" "--memory-budget=$smallest"
  done
}

emit_measured() {
  local entry model batch budget precision file
  for entry in "${measured[@]}"; do
    IFS=: read -r model batch <<<"$entry"
    file=${SLUICE_MODELS:-$HOME/.cache/sluice/models}/$model-224/model.onnx
    [ -f "$file" ] || { say "left out $model: no $file (test/models/make_torchvision.py --size 224 --export-only $model)"; continue; }
    for precision in fp32 tf32 bf16; do
      emit "${model}_${precision}_keep" "$file" "--batch=$batch" --init=kaiming --precision=$precision --strategy=keep
    done
    # What larger workspaces gain: the engines of few channels pad their input in theirs.
    emit "${model}_bf16_keep512MiB" "$file" "--batch=$batch" --init=kaiming --precision=bf16 --strategy=keep --workspace-limit=512MiB
    for precision in tf32 bf16; do
      for budget in "${budgets[@]}"; do
        emit "${model}_${precision}_${budget//%/}" "$file" "--batch=$batch" --init=kaiming --precision=$precision "--memory-budget=$budget"
      done
    done
  done
}

# GPT-2 of 124M parameters at the batch and length that llm.c is measured at.
emit_text() {
  local file=${SLUICE_MODELS:-$HOME/.cache/sluice/models}/gpt2-124m/model.onnx budget
  local flags=(--batch=32 --init=xavier --precision=bf16 --optimizer=adamw --loss=token-cross-entropy)
  [ -f "$file" ] || { say "left out gpt2: no $file (test/models/make_gpt2.py)"; return; }
  emit gpt2_bf16_keep "$file" "${flags[@]}" --strategy=keep
  [ ! -f "${file/124m/124m-dropout}" ] || emit gpt2_dropout_bf16_keep "${file/124m/124m-dropout}" "${flags[@]}" --strategy=keep
  for budget in "${budgets[@]}"; do emit "gpt2_bf16_${budget//%/}" "$file" "${flags[@]}" "--memory-budget=$budget"; done
}

# What first_programs in gpu_check.sh names, where the models are there.
prebuild() { # architecture
  local programs name list
  list=$(sed -n 's/^first_programs=(\(.*\))$/\1/p' tools/gpu_check.sh)
  programs=(cuda_conformance)
  for name in check_mlp $list; do [ ! -d "$pack/programs/$name" ] || programs+=("$name"); done
  say "building ${programs[*]} for compute capability $1"
  cmake -G Ninja -S "$pack" -B "$work/prebuilt" "-DSLUICE_CUDA_ARCHITECTURES=$1-real" >"$work/error" 2>&1 || die "cannot be configured: $(tail -n 3 "$work/error" | tr '\n' ' ')"
  cmake --build "$work/prebuilt" --target "${programs[@]}" >"$work/error" 2>&1 || die "cannot be built: $(grep -m 1 -iE 'error|fatal' "$work/error")"
  for name in "${programs[@]}"; do
    mkdir -p "$pack/bin/$name"
    cp "$work/prebuilt/$name/"* "$pack/bin/$name/"
    strip "$pack/bin/$name/$name"
  done
  say "programs of $(du -sb "$pack/bin" | cut -f1) bytes"
}

out=sluice_gpu_check.tar.xz prebuilt=
while [ $# -gt 0 ]; do
  case $1 in
    -o) out=${2:?-o needs a file} ;;
    --prebuilt) prebuilt=${2:?--prebuilt needs an architecture such as 90} ;;
    *) sed -n '3,10p' "${BASH_SOURCE[0]}"; exit 2 ;;
  esac
  shift 2
done
[ -x build/bin/sluicec ] || die "there is no build/bin/sluicec: run tools/setup.sh first"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pack=$work/sluice_gpu_check
mkdir -p "$pack/test/unit/runtime" "$pack/test/unit/cuda" "$pack/googletest"
emit_checked
emit_inverted
emit_measured
emit_text
[ -d "$pack/runtime" ] || die "no program was emitted: there is nothing to pack"
cp test/unit/runtime/{Harness,ConvCases,PackedForm,ZeroValues}.h test/unit/runtime/kernels_*.cpp "$pack/test/unit/runtime/"
cp test/unit/cuda/Halves.h test/unit/cuda/bf16_*.cpp test/unit/cuda/{conv_alternatives,loss_scale}.cpp "$pack/test/unit/cuda/"
for file in test/unit/cuda/bf16_*.cpp; do printf '#define SLUICE_HALF F16\n#include "%s"\n' "$file" >"$pack/${file/bf16_/fp16_}"; done
cp -r /usr/src/googletest/googletest/{include,src} /usr/src/googletest/googlemock/{include,src} "$pack/googletest/" ||
  die "GoogleTest's sources are missing in /usr/src/googletest"
cp /usr/share/doc/googletest/copyright "$pack/googletest/LICENSE" 2>/dev/null
cp tools/gpu_check.sh tools/bench/gpu_conformance.sh tools/bench/gpu_{libraries,peers,report}.py tools/bench/zoo_own.py "$pack/"
cp tools/bench/gpu_check.cmake "$pack/CMakeLists.txt"
{ git rev-parse HEAD; git status --porcelain | head -n 1; } >"$pack/commit" 2>/dev/null
mkdir -p "$pack/data_libraries"
for file in include/jpeglib.h include/jmorecfg.h include/jerror.h include/x86_64-linux-gnu/jconfig.h include/png.h include/pngconf.h include/pnglibconf.h \
  include/zlib.h include/zconf.h lib/x86_64-linux-gnu/libjpeg.a lib/x86_64-linux-gnu/libpng.a lib/x86_64-linux-gnu/libz.a \
  share/doc/libjpeg62-turbo-dev/copyright share/doc/libpng-dev/copyright share/doc/zlib1g-dev/copyright; do
  name=$(basename "$file")
  [ "$name" != copyright ] || name=$(basename "$(dirname "$file")").copyright
  cp -L "/usr/$file" "$pack/data_libraries/$name" || die "the data libraries' files are missing: run tools/setup.sh first"
done
[ -z "$prebuilt" ] || prebuild "$prebuilt"
# Programs share a static runtime: a window that holds them all finds it again in each.
tar -C "$work" -cf - sluice_gpu_check | xz -T2 --lzma2=preset=6,dict=192MiB >"$work/pack.tar.xz" && mv "$work/pack.tar.xz" "$out" || die "cannot write $out"
bytes=$(stat -c %s "$out") files=$(git ls-files -z | xargs -0 cat | wc -c)
say "$out: $bytes bytes, $(find "$pack/programs" -name program.cu | wc -l) programs; with the files of this repository $((bytes + files)) of $largest that may travel"
[ $((bytes + files)) -le $largest ] || die "that is too much to travel"
