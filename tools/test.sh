#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs all tests. Ends with ctest's count.
#
#   tools/test.sh             all tests of the ordinary build, conventions (tools/lint.sh) included
#   tools/test.sh asan|tsan   unit tests under a sanitizer (tsan: those of the host runtime, which alone has threads), and
#                             programs that do all that plans can ask for
#   tools/test.sh fuzz [MINUTES]   libFuzzer on everything that is read, models first (default: 10 minutes); goes on from what it found
#                             worth keeping in build-fuzz/corpus, stops at the first defect and leaves its input in build-fuzz
#   tools/test.sh package     the Debian package, unpacked into a folder: its commands make a project and train it there
#   tools/test.sh wheel       the Python wheel, installed into an empty environment: it trains there, with what it could take from elsewhere hidden
#   tools/test.sh matrix      every strategy and budget on real models against keep: hours, goes on where it was interrupted
set -euo pipefail
# shellcheck source=setup.sh
source "$(dirname "$0")/setup.sh"

if [ "${1:-}" = wheel ]; then
  tools/wheel.sh build-wheel/dist
  python=$deps/venv/bin/python
  [ -f "$deps/venv/.complete" ] || python=
  exec test/tools/wheel.sh build-wheel/dist/sluice-*.whl "$python"
fi
preset=${1:-release}
[ "$preset" != matrix ] || matrix=full preset=release
[ "$preset" != package ] || package=yes preset=release
minutes=${2:-10}
folder=build
[ "$preset" = release ] || folder=build-$preset
# compile_sanitized SANITIZER SOURCE PROGRAM: by $cxx with $libraries where those are set.
compile_sanitized() {
  "${cxx:-c++}" -std=c++17 -g1 -ffp-contract=off "-fsanitize=$1" -I. "$2" -o "$3" ${libraries:+"$libraries"} "$folder/lib/libsluice_host.a" -ldnnl -lzfp -ljpeg -lpng -lz -lgomp -lpthread
}
# sanitized_program SANITIZER MODEL FLAGS...: builds $folder/program, likewise.
sanitized_program() {
  build/bin/sluicec "test/models/deep/$2/model.onnx" --init=kaiming --emit=source -o "$folder/program.cpp" "${@:3}"
  compile_sanitized "$1" "$folder/program.cpp" "$folder/program"
}

# The threads around the steps: two that read images (so large a batch is worth it), one that writes a checkpoint of every step, evaluations between.
train_on_images() {
  local i
  rm -rf "$folder/images" "$folder/run"
  mkdir -p "$folder/images/a" "$folder/images/b"
  for i in {1..60}; do
    cp test/unit/runtime/images/colours.jpg "$folder/images/a/$i.jpg"
    cp test/unit/runtime/images/palette.png "$folder/images/b/$i.png"
  done
  SLUICE_DELAY=1 "$folder/program" --data "imagefolder:$folder/images" --augment 'random-resized-crop;flip;rotate;colour' --shuffle --workers 2 --mixup 0.4 \
    --steps 5 --checkpoint "$folder/run" --checkpoint-every 1 --keep-checkpoints 2 --evaluate "imagefolder:$folder/images" --evaluate-every 2 --best loss --patience 9
}

# Two processes that train one model: sums, norms and shares of both, checkpoints, going on, and a rank that is killed; dropout with evaluations; states
# in files. MPI is not checked: it frees little of what it takes, and its threads are not seen.
train_ranks() {
  local sanitizer=$1 status=0
  local mpirun=(env "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0" "TSAN_OPTIONS=$TSAN_OPTIONS:ignore_noninstrumented_modules=1" SLUICE_DELAY=1 OMPI_ALLOW_RUN_AS_ROOT=1
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none mpirun -q --oversubscribe --bind-to none -n 2)
  local cxx=mpicxx libraries=$folder/lib/libsluice_mpi.a train=("${mpirun[@]}" "$folder/program" --threads 1)
  local texts=(--data test/models/tiny/gpt/data --evaluate test/models/tiny/gpt/data)
  [ -f "$libraries" ] || {
    say "no MPI: ranks are not checked"
    return
  }
  say "training on two ranks under -fsanitize=$sanitizer: dropout, targets that do not count, shares of states"
  rm -rf "$folder/gpt"
  build/bin/sluicec test/models/tiny/gpt/model.onnx --batch=2 --ranks=mpi --accumulate --loss=token-cross-entropy --ignore-index=3 --optimizer=adamw --adapter=lora,rank=2,dropout=0.3 \
    --shard=states,ranks=2 --emit=project -o "$folder/gpt"
  compile_sanitized "$sanitizer" "$folder/gpt/program.cpp" "$folder/gpt/gpt"
  "${mpirun[@]}" "$folder/gpt/gpt" --threads 1 "${texts[@]}" --steps 4 --accumulate 2 --shuffle --evaluate-every 2
  say "training on two ranks under -fsanitize=$sanitizer: states and activations in files"
  sanitized_program "$sanitizer" vgg --batch=4 --ranks=mpi --optimizer=adam --shard=states,ranks=2 --strategy=vdnn-all --host-budget=storage --state-home=storage
  "${train[@]}" --data synthetic --steps 3 --offload-to "$folder/slots"
  say "training on two ranks under -fsanitize=$sanitizer: BatchNorm of both, shares of parameters, checkpoints, a rank that is killed"
  sanitized_program "$sanitizer" residual --batch=4 --ranks=mpi --accumulate --clip-norm --optimizer=adam --batch-norm=synchronized,ranks=2 --shard=parameters,ranks=2 --memory-budget=75%act \
    --host-budget=unlimited
  rm -rf "$folder/run"
  train+=(--data synthetic --accumulate 2 --clip-norm 1 --checkpoint "$folder/run" --checkpoint-every 1 --offload-to "$folder/slots")
  "${train[@]}" --steps 4
  "${train[@]}" --steps 6 --resume "$folder/run"
  /usr/bin/python3 test/execute/inputs/end_rank.py SIGKILL 1 "$folder/killed.jsonl" failed "${train[@]}" --steps 100000 --force --log "$folder/killed.jsonl" 2>"$folder/killed" || status=$?
  cat "$folder/killed"
  [ "$status" = 0 ] && ! grep -E 'ERROR: AddressSanitizer|runtime error|WARNING: ThreadSanitizer' "$folder/killed"
}

# Trains generated programs with delayed streams and host memory on disk; the sanitizer's status ends the script.
train_sanitized() {
  local sanitizer=$1 model budget strategy parts
  build release
  say "training vgg on images, with checkpoints and evaluations, under -fsanitize=$sanitizer"
  sanitized_program "$sanitizer" vgg --batch=96
  train_on_images
  while read -r model budget strategy _; do
    say "training $model with $strategy under -fsanitize=$sanitizer"
    sanitized_program "$sanitizer" "$model" --batch=8 "--strategy=$strategy" --allow-lossy=fp16,zfp,invert "--memory-budget=$budget" --host-budget=unlimited
    SLUICE_DELAY=1 "$folder/program" --data synthetic --steps 5 --offload-to "$folder/slots"
  done <<END
mobile 50%act superneurons (recomputation and copies)
vgg 97%act gist (masks)
vgg 75%act vdnn-all,codec=zvc (copies without zeros)
vgg 75%act vdnn-all,codec=zvc:pool=300KiB (into a pool, the rest into a file)
bottleneck 75%act freelunch,hybrid=1,codec=fp16,buffers=2 (zfp on the device, copies in halves)
leaky 75%act hascoet (inversion)
END
  for parts in batch=2 image=3; do
    say "training vgg in parts, $parts, with parameters and states in a file, under -fsanitize=$sanitizer"
    sanitized_program "$sanitizer" vgg --batch=4 "--parts=$parts" --optimizer=adamw --accumulate --clip-norm --state-home=storage --parameter-home=storage --memory-budget=100%act --host-budget=storage
    SLUICE_DELAY=1 "$folder/program" --data synthetic --steps 3 --accumulate 2 --clip-norm 1 --offload-to "$folder/slots"
  done
}

# What the C interface is tested by, with libraries whose code and runtime are sanitized. Python itself leaks; the callbacks' program may not.
call_sanitized() {
  local sanitizer=$1 work=$PWD/$folder/library name
  build release
  say "calling libraries under -fsanitize=$sanitizer"
  rm -rf "$work"
  mkdir -p "$work/data" "$work/few"
  cat >"$work/cxx" <<END
#!/usr/bin/env bash
words=()
for word; do words+=("\${word/#"$PWD/build/lib/"/"$PWD/$folder/lib/"}"); done
exec c++ -g1 "-fsanitize=$sanitizer" "\${words[@]}"
END
  chmod +x "$work/cxx"
  local compile=(env "CXX=$work/cxx" build/bin/sluicec test/models/tiny/mlp/model.onnx --batch=8)
  /usr/bin/python3 test/models/library_data.py "$work"
  "${compile[@]}" -o "$work/program"
  "${compile[@]}" --emit=library -o "$work/one"
  "${compile[@]}" --emit=library --optimizer=adam --accumulate -o "$work/two"
  (cd "$work" && ./program --data data --steps 6 --log log.jsonl --export trained.safetensors --evaluate few --predict few --output predicted.npy --checkpoint run --checkpoint-every 3 --keep-checkpoints 2)
  name=asan
  [ "$sanitizer" != thread ] || name=tsan
  # The sanitizer looks for exceptions' functions before Python has loaded any C++.
  local python=(env "LD_PRELOAD=$(c++ "-print-file-name=lib$name.so") $(c++ -print-file-name=libstdc++.so)" "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0" /usr/bin/python3)
  "${python[@]}" test/models/library.py "$work"
  "$work/cxx" -std=c++17 "-I$work" test/execute/inputs/library_callbacks.cpp "-L$work" -lone "-Wl,-rpath,$work" -o "$work/callbacks"
  "$work/callbacks" 1000
  say "reading files by a library under -fsanitize=$sanitizer"
  mkdir "$work/files"
  env "CXX=$work/cxx" "PATH=$PWD/build/bin:$PATH" test/execute/inputs/library_files.sh "$work/files"
  "${python[@]}" test/models/library_files.py "$work/files"
}

# Every format gets its share of the time, models half of it. A hang is 10 s of a program as users have it: planning takes up to twenty times
# as long under sanitizers and coverage.
fuzz() {
  local target share found name
  for target in model npy safetensors checkpoint recipe image npz table shards idx problem packing profile; do
    share=$((minutes * 60 / 24))
    [ "$target" != model ] || share=$((minutes * 60 / 2))
    say "fuzzing $target for $share s"
    found=$folder/corpus/$target
    mkdir -p "$found"
    [ "$target" != model ] || for name in mlp signal gates; do cp "test/models/tiny/$name/model.onnx" "$found/$name.onnx"; done
    SLUICE_FUZZ=$target "$folder/bin/fuzz" "$found" "test/fuzz/corpus/$target" -max_total_time="$share" -timeout=200 -report_slow_units=60 -rss_limit_mb=2048 \
      -max_len=100000 -dict=test/fuzz/dictionary.txt -artifact_prefix="$folder/$target-" -print_final_stats=1
  done
}

# What the package holds works wherever it is unpacked, with nothing in the environment but the system's programs.
check_package() {
  local work=$PWD/$folder/package
  rm -rf "$work"
  say "making the package"
  cpack -G DEB --config "$folder/CPackConfig.cmake" -B "$work" >"$folder/package.log"
  dpkg-deb --field "$work"/sluice_*.deb Package Version Depends
  dpkg -x "$work"/sluice_*.deb "$work/root"
  say "making a project with what it holds"
  local clean=(env -i "PATH=$work/root/usr/bin:/usr/bin:/bin" "HOME=$work" SLUICE_DEVICE=host)
  "${clean[@]}" sluice --version
  (cd "$work" && "${clean[@]}" sluice new project)
  sed -n 's/^    //p' "$work/project/README.md" >"$work/commands"
  (cd "$work/project" && "${clean[@]}" sh -e ../commands | tail -n 1)
  test -s "$work/project/trained.onnx"
  test -s "$work/root/usr/share/man/man1/sluicec.1"
  test -s "$work/root/usr/share/doc/sluice/docs/guide.md"
  "${clean[@]}" cmake -S examples/hello -B "$work/hello" "-DCMAKE_PREFIX_PATH=$work/root/usr" >"$work/hello.log"
  "${clean[@]}" cmake --build "$work/hello" >>"$work/hello.log"
  "$work/hello/hello"
  say "the package works"
}

# What failed, where the end of the output shows it: lit's tests by name with the last lines of each, then ctest's summary once more.
show_failures() {
  awk '/^\*+ TEST .* FAILED \*+$/ { count = 0; inside = 1 }
    inside { kept[count++ % 25] = $0 }
    inside && /^\*+$/ { for (i = count > 25 ? count - 25 : 0; i < count; ++i) print kept[i % 25]; inside = 0 }' "$1"
  grep -E '^(FAIL|TIMEOUT|UNRESOLVED|XPASS): ' "$1" | sort -u || true
  sed -n '/^The following tests FAILED:/,/^Errors/p' "$1"
  grep 'tests passed, .* tests failed out of ' "$1" | tail -1
}

install_packages
case $preset${matrix:-} in
  release) install_missing clang-format-22 || say "no clang-format-22: the conventions will not be checked" ;;
  fuzz) install_missing clang libclang-rt-dev ;;
esac
install_onnx
install_cudnn_frontend
build "$preset"
# MLIR's allocators poison where they are inlined here, and do not lift it where they run in its library, which knows no sanitizer.
export ASAN_OPTIONS=allow_user_poisoning=0
export TSAN_OPTIONS=suppressions=$PWD/test/tsan-suppressions.txt UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
if [ "$preset" = fuzz ]; then
  fuzz
  exit
fi
if [ -n "${package:-}" ]; then
  check_package
  exit
fi
if [ -n "${matrix:-}" ]; then
  install_references
  say "exporting the models"
  for model in resnet18 resnet50 vgg16 densenet121 mobilenet_v2 leaky_resnet18 unet; do
    compgen -G "$deps/models/$model-*/model.onnx" >/dev/null ||
      "$deps/venv/bin/python" test/models/make_torchvision.py --export-only --out "$deps/models" "$model"
  done
  exec test/models/matrix.py --full --data "$deps/models" --out build/matrix-full
fi
say "running the tests"
selection=()
case $preset in
  asan) selection=(--exclude-regex '_NOT_BUILT|^(lit|lint|matrix)$|^(kernels|allocations|models)_') ;;
  tsan) selection=(--exclude-regex '_NOT_BUILT|^(lit|lint|matrix)$|^(kernels|allocations|models)_|^fuzz-') ;;
esac
ctest --test-dir "$folder" --parallel "$(nproc)" --output-on-failure "${selection[@]}" 2>&1 | tee "$folder/ctest.log" || {
  status=$?
  show_failures "$folder/ctest.log"
  exit "$status"
}
case $preset in
  asan) sanitizer=address,undefined ;;
  tsan) sanitizer=thread ;;
  *) exit 0 ;;
esac
train_sanitized "$sanitizer"
train_ranks "$sanitizer"
call_sanitized "$sanitizer"
