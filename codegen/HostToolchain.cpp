// SPDX-License-Identifier: Apache-2.0
// The flags are those of runtime/Levels.cmake and runtime/Standalone.cmake, for the same bits as in a project.
#include "codegen/Home.h"
#include "codegen/Toolchain.h"
#include "runtime/CpuTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Program.h"

#include <cstdlib>
#include <filesystem>

namespace fs = std::filesystem;
using namespace sluice;
using namespace sluice::codegen;

std::string sluice::codegen::versionFlag(const std::string &version) { return "-DSLUICE_COMPILER=\"" + version + '"'; }

void sluice::codegen::addWords(const char *list, std::vector<std::string> &to) {
  llvm::SmallVector<llvm::StringRef> words;
  llvm::StringRef(list).split(words, ' ', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef word : words)
    to.push_back(word.str());
}

/// Where an installation carries the libraries of programs (tools/Carry.cmake); nothing where those of the system are
/// linked.
static fs::path carriedLibraries(const Home &home) {
  const fs::path folder = home.libraries / "linked";
  return home.installed && fs::exists(folder) ? folder : fs::path();
}

/// Of 64-bit ARM, as Debian calls it: for programs, folders and compilers.
static const char *const armMachine = "aarch64-linux-gnu";

/// 0: a name of no row.
static int levelOf(llvm::StringRef cpu) {
  for (int level = firstLevel; level <= lastLevel; ++level)
    if (cpu == factsOfCpu(level).name)
      return level;
  return 0;
}

/// What tools/arm64.sh puts there: the runtime's archive, and the libraries that it needs.
static Result<std::string> findForeignRuntime(const Home &home, const std::string &cpu) {
  const fs::path library = home.libraries / armMachine / ("libsluice_host-" + cpu + ".a");
  if (!isArm(levelOf(cpu)))
    return Error{"a compiler on ARM builds no programs for --cpu=" + cpu +
                 "; write it with --emit=project and build it there"};
  if (!fs::exists(library))
    return Error{"the runtime for --cpu=" + cpu + " is not built: looked for " + library.string() + "; " +
                 (home.installed ? "" : "tools/arm64.sh " + cpu + " builds it, or ") +
                 "write the program with --emit=project and build it on its machine"};
  return library.string();
}

/// The archive of the runtime. Also looks for what programs need beside it, so that a missing part is named here and
/// not by a linker.
static Result<std::string> findRuntime(const Home &home, const std::string &cpu, const std::string &level) {
  if (isForeign(levelOf(level)))
    return findForeignRuntime(home, level);
  // That of the level that this compiler was built for has the plain name.
  const std::string runtime = std::string("sluice_host") + (level == SLUICE_HOST_LEVEL ? "" : "-" + level);
  const fs::path library = home.libraries / ("lib" + runtime + ".a");
  if (!fs::exists(home.headers / "runtime"))
    return Error{"the runtime's headers are missing: looked in " + home.headers.string()};
  if (!fs::exists(library))
    return Error{"the runtime for --cpu=" + cpu + " is not " + (home.installed ? "installed" : "built") +
                 ": looked for " + library.string() +
                 (home.installed ? "" : "; build it with cmake --build " SLUICE_BUILD_DIR " --target " + runtime)};
  if (carriedLibraries(home).empty())
    if (Status there = checkDnnl(SLUICE_DNNL_LIBRARY); !there)
      return Error{there.error()};
  return library.string();
}

Status sluice::codegen::checkDnnl(const std::string &library) {
  if (!fs::path(library).is_absolute() || fs::exists(library))
    return Success{};
  return Error{"oneDNN, which programs for this target link, is missing: looked for " + library +
               "; install it (Debian: libdnnl-dev), or write the program with --emit=project and build it where oneDNN "
               "is"};
}

/// Carried ones are found by what they need among themselves, too, which no RUNPATH says.
static std::vector<std::string> librariesOf(const Home &home, bool foreign) {
  std::vector<std::string> link;
  if (foreign) {
    const std::string folder = (home.libraries / armMachine).string();
    return {"-L" + folder, "-Wl,-rpath-link," + folder, "-ldnnl", "-lgomp", "-lpthread", "-ljpeg", "-lpng", "-lz",
            "-lzfp"};
  }
  if (const fs::path carried = carriedLibraries(home); !carried.empty()) {
    for (const fs::directory_entry &library : fs::directory_iterator(carried))
      link.push_back(library.path().string());
    llvm::sort(link);
    const std::string folder = "-rpath=" + carried.string();
    link.insert(link.begin(), {"-Wl,--as-needed,--disable-new-dtags", "-Xlinker", folder});
    link.push_back("-lpthread");
    return link;
  }
  link = {SLUICE_DNNL_LIBRARY, "-lgomp", "-lpthread"};
  addWords(SLUICE_DATA_LIBRARIES, link);
  addWords(SLUICE_ZFP_LIBRARY, link);
  return link;
}

int sluice::codegen::ownLevel() { return levelOf(SLUICE_HOST_LEVEL); }

Result<std::string> sluice::codegen::findCxxCompiler(bool foreign) {
  const char *chosen = foreign ? nullptr : std::getenv("CXX");
  const std::string cross = std::string(armMachine) + "-g++";
  const std::string wanted = foreign ? cross : chosen && *chosen ? chosen : "c++";
  if (auto compiler = llvm::sys::findProgramByName(wanted))
    return *compiler;
  if (foreign)
    return Error{"there is no cross compiler '" + wanted + "' to build the program with; install one (Debian: g++-" +
                 armMachine + ")"};
  return Error{"there is no C++ compiler '" + wanted +
               "' to build the program with; install one (Debian, Ubuntu: g++; Fedora: gcc-c++), or name one by CXX"};
}

Result<std::vector<std::string>> sluice::codegen::findRanksLibraries(const Home &home, Target target) {
  const bool cuda = target == Target::Cuda;
  std::vector<std::string> words;
  const auto add = [&](const char *part, const char *libraries) {
    const fs::path archive = home.libraries / ("libsluice_" + std::string(part) + ".a");
    words.push_back(archive.string());
    addWords(libraries, words);
    return *libraries && fs::exists(archive);
  };
  if (cuda && !add("nccl", SLUICE_NCCL_LIBRARIES))
    return Error{
        "this compiler was built without NCCL: looked for " + words.front() +
        "; install NCCL (nccl.h, libnccl) and build sluicec again, or write the program with --emit=project and "
        "build it where NCCL is"};
  if (!*SLUICE_MPI_LIBRARIES && cuda) // whose processes torchrun and Slurm start as well
    return words;
  if (!add("mpi", SLUICE_MPI_LIBRARIES))
    return Error{
        "this compiler was built without MPI: looked for " + (home.libraries / "libsluice_mpi.a").string() +
        "; install MPI (Debian: libopenmpi-dev, openmpi-bin) and build sluicec again, or write the program with "
        "--emit=project and build it where MPI is"};
  return words;
}

/// No contraction of products and sums, so that emitted regions and the runtime's kernels give the same bits at every
/// level; vectors of 256 bits, as in the runtime.
Result<Toolchain> sluice::codegen::findHostToolchain(const std::string &cpu, bool ranks) {
  const std::string level = cpu == "native" ? SLUICE_HOST_LEVEL : cpu;
  const Home home = findHome();
  Result<std::string> runtime = findRuntime(home, cpu, level);
  if (!runtime)
    return runtime.takeError();
  const bool foreign = isForeign(levelOf(level));
  Result<std::string> compiler = findCxxCompiler(foreign);
  if (!compiler)
    return compiler.takeError();
  Toolchain with;
  if (ranks && foreign)
    return Error{"programs for --ranks=mpi are not cross-compiled; write it with --emit=project and build it on its "
                 "machine"};
  if (ranks) {
    Result<std::vector<std::string>> libraries = findRanksLibraries(home, Target::Host);
    if (!libraries)
      return libraries.takeError();
    with.ranks = *libraries;
  }
  with.compiler = with.linker = *compiler;
  if (foreign)
    with.binutils = std::string(armMachine) + "-";
  with.runtime = *runtime;
  // Position-independent, so that addresses are random, and without writable tables of functions.
  with.inPrograms = {"-fPIE", "-pie", "-Wl,-z,relro,-z,now"};
  with.inLibraries = {"-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections"};
  // Hardened as the program of a project is, see runtime/Standalone.cmake; the level as runtime/Levels.cmake says.
  with.compile = {"-fstack-protector-strong",
                  "-D_GLIBCXX_ASSERTIONS",
                  "-std=c++17",
                  "-O3",
                  "-ffp-contract=off",
                  "-fno-math-errno",
                  "-fno-trapping-math",
                  "-march=" + (level.empty() ? "native" : level),
                  "-I" + home.headers.string()};
  if (level.rfind("x86-64", 0) == 0)
    with.compile.push_back("-mprefer-vector-width=256");
  with.link = librariesOf(home, foreign);
  if (llvm::StringRef(SLUICE_SANITIZE_FLAG).size()) {
    with.compile.push_back(SLUICE_SANITIZE_FLAG);
    with.link.push_back(SLUICE_SANITIZE_FLAG);
  }
  return with;
}

Result<Toolchain> sluice::codegen::findToolchain(Target target, const std::string &cpu, bool ranks) {
  switch (target) {
  case Target::Host:
    return findHostToolchain(cpu, ranks);
  case Target::Cuda:
    return findCudaToolchain(ranks);
  }
  llvm_unreachable("no target");
}
