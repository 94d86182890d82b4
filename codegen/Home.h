// SPDX-License-Identifier: Apache-2.0
// Where the compiler's own files lie: what programs are compiled with and linked to, what projects are copied from.
#pragma once

#include <filesystem>

namespace sluice::codegen {

/// A library of headers that projects get with its licence.
struct HeaderLibrary {
  std::filesystem::path headers; ///< a folder
  std::filesystem::path licence; ///< a file; empty: not found when this compiler was built
};

/// Of an installed compiler, folders of its prefix, wherever that was moved to; else those that it was built from.
struct Home {
  std::filesystem::path headers;   ///< has runtime/Runtime.h
  std::filesystem::path libraries; ///< has the archives of the runtimes
  std::filesystem::path sources;   ///< has runtime/, codegen/*Project.cmake and LICENSE
  HeaderLibrary json, toml, cudnnFrontend;
  bool installed; ///< there is no build to go on with
};

/// Found anew at each call. The files in it may be missing.
Home findHome();

} // namespace sluice::codegen
