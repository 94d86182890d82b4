// SPDX-License-Identifier: Apache-2.0
// The flags are those of runtime/CMakeLists.txt, the architectures and libraries those that this compiler's own cuda
// runtime was built with.
#include "codegen/Home.h"
#include "codegen/Toolchain.h"

#include "llvm/Support/Program.h"

#include <cstdlib>
#include <filesystem>

namespace fs = std::filesystem;
using namespace sluice;
using namespace sluice::codegen;

Result<Toolchain> sluice::codegen::findCudaToolchain(bool ranks) {
  const Home home = findHome();
  const fs::path runtime = home.libraries / "libsluice_cuda.a";
  const char *chosen = std::getenv("CUDACXX"); // as CMake calls it
  auto compiler = llvm::sys::findProgramByName(chosen && *chosen ? chosen : SLUICE_NVCC);
  // A path is found whether there is a file or not.
  if (!compiler || !fs::exists(*compiler) || !fs::exists(home.headers / "runtime") || !fs::exists(runtime))
    return Error{
        "there is no nvcc or no cuda runtime to build the program with; write it with --emit=project and build it "
        "where they are"};
  Result<std::string> linker = findCxxCompiler();
  if (!linker)
    return linker.takeError();
  Toolchain with;
  if (ranks) {
    Result<std::vector<std::string>> libraries = findRanksLibraries(home, Target::Cuda);
    if (!libraries)
      return libraries.takeError();
    with.ranks = *libraries;
  }
  with.compiler = *compiler;
  with.linker = *linker;
  with.runtime = runtime.string();
  with.inLibraries = {"-Xcompiler=-fPIC,-fvisibility=hidden,-ffunction-sections,-fdata-sections,-fno-gnu-unique"};
  with.compile = {"-std=c++17", "-O3", "-fmad=false", "--expt-relaxed-constexpr", "-I" + home.headers.string()};
  addWords(SLUICE_CUDA_ARCHITECTURES, with.compile);
  addWords(SLUICE_CUDA_LIBRARIES, with.link);
  addWords(SLUICE_DATA_LIBRARIES, with.link);
  with.link.push_back("-lpthread");
  return with;
}
