// SPDX-License-Identifier: Apache-2.0
// An installed compiler knows itself by the sources beside it, as CMakeLists.txt installs them, and then looks nowhere
// else: what is missing there would be taken from a build that may be gone or another one tomorrow.

#include "codegen/Home.h"

namespace fs = std::filesystem;

namespace sluice::codegen {

/// By the executable's own place and not by arguments or the environment, so that a moved prefix goes on working.
Home findHome() {
  std::error_code error;
  const fs::path prefix = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
  const fs::path shared = prefix / "share/sluice", others = shared / "third_party";
  if (!error && fs::exists(shared / "runtime", error)) {
    const auto library = [&](const char *name, const char *headers) {
      return HeaderLibrary{others / name / headers, others / name / "LICENSE"};
    };
    return {prefix / "include/sluice",
            prefix / "lib/sluice",
            shared,
            library("nlohmann", ""),
            library("toml++", ""),
            library("cudnn_frontend", "include"),
            true};
  }
  return {SLUICE_SOURCE_DIR,
          fs::path(SLUICE_HOST_LIBRARY).parent_path(),
          SLUICE_SOURCE_DIR,
          {SLUICE_JSON_INCLUDE "/nlohmann", SLUICE_JSON_LICENCE},
          {SLUICE_TOML_INCLUDE "/toml++", SLUICE_TOML_LICENCE},
          {SLUICE_CUDNN_FRONTEND, SLUICE_CUDNN_FRONTEND_LICENCE},
          false};
}

} // namespace sluice::codegen
