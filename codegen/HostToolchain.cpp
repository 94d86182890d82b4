// SPDX-License-Identifier: Apache-2.0
// The flags are those of runtime/Levels.cmake and runtime/Standalone.cmake, for the same bits as in a project.
#include "codegen/HostToolchain.h"

#include "codegen/Home.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Program.h"

#include <cstdlib>
#include <filesystem>

namespace fs = std::filesystem;
using namespace sluice;
using namespace sluice::codegen;

/// The words of a list from the build.
static void addWords(llvm::StringRef list, std::vector<std::string> &to) {
  llvm::SmallVector<llvm::StringRef> words;
  list.split(words, ' ', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef word : words)
    to.push_back(word.str());
}

/// Where an installation carries the libraries of programs (tools/Carry.cmake); nothing where those of the system are
/// linked.
static fs::path carriedLibraries(const Home &home) {
  const fs::path folder = home.libraries / "linked";
  return home.installed && fs::exists(folder) ? folder : fs::path();
}

static Result<std::string> findRuntime(const Home &home, const std::string &cpu, const std::string &level) {
  // That of the level that this compiler was built for has the plain name.
  const std::string runtime = std::string("sluice_host") + (level == SLUICE_HOST_LEVEL ? "" : "-" + level);
  const fs::path library = home.libraries / ("lib" + runtime + ".a");
  if (!fs::exists(home.headers / "runtime"))
    return Error{"the runtime's headers are missing: looked in " + home.headers.string()};
  if (!fs::exists(library))
    return Error{"the runtime for --cpu=" + cpu + " is not " + (home.installed ? "installed" : "built") +
                 ": looked for " + library.string() +
                 (home.installed ? "" : "; build it with cmake --build " SLUICE_BUILD_DIR " --target " + runtime)};
  if (const fs::path vendor = SLUICE_DNNL_LIBRARY;
      vendor.is_absolute() && !fs::exists(vendor) && carriedLibraries(home).empty())
    return Error{"oneDNN, which programs for this target link, is missing: looked for " + vendor.string() +
                 "; install it (Debian: libdnnl-dev), or write the program with --emit=project and build it where "
                 "oneDNN is"};
  return library.string();
}

/// Carried ones are found by what they need among themselves, too, which no RUNPATH says.
static std::vector<std::string> librariesOf(const Home &home) {
  std::vector<std::string> link;
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

int sluice::codegen::ownLevel() {
  const llvm::StringRef level = SLUICE_HOST_LEVEL;
  return level.empty() ? 0 : level.back() - '0';
}

Result<HostToolchain> sluice::codegen::findHostToolchain(const std::string &cpu) {
  const std::string level = cpu == "native" ? SLUICE_HOST_LEVEL : cpu;
  const Home home = findHome();
  Result<std::string> runtime = findRuntime(home, cpu, level);
  if (!runtime)
    return runtime.takeError();
  const char *chosen = std::getenv("CXX");
  const std::string wanted = chosen && *chosen ? chosen : "c++";
  auto compiler = llvm::sys::findProgramByName(wanted);
  if (!compiler)
    return Error{"there is no C++ compiler '" + wanted +
                 "' to build the program with; install one (Debian, Ubuntu: g++; Fedora: gcc-c++), or name one by CXX"};
  HostToolchain with;
  with.compiler = *compiler;
  with.runtime = *runtime;
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
#if defined(__x86_64__)
  with.compile.push_back("-mprefer-vector-width=256");
#endif
  with.link = librariesOf(home);
  if (llvm::StringRef(SLUICE_SANITIZE_FLAG).size()) {
    with.compile.push_back(SLUICE_SANITIZE_FLAG);
    with.link.push_back(SLUICE_SANITIZE_FLAG);
  }
  return with;
}
