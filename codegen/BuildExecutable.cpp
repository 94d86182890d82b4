// SPDX-License-Identifier: Apache-2.0
// Runs the C++ compiler on emitted source. Runtime headers and library are found relative to this executable, else where it was built.
#include "codegen/BuildExecutable.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <filesystem>

namespace fs = std::filesystem;
using namespace sluice::codegen;

static fs::path executableFolder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

/// The first of the places that exists.
static fs::path firstOf(std::initializer_list<fs::path> places) {
  for (const fs::path &place : places)
    if (fs::exists(place))
      return place;
  return {};
}

static fs::path sourceRoot() { return firstOf({executableFolder() / "../include/sluice", SLUICE_SOURCE_DIR}); }

std::string sluice::codegen::buildExecutable(const std::string &source, const std::string &executable) {
  fs::path root = sourceRoot(), library = firstOf({executableFolder() / "../lib/libsluice_host.a", SLUICE_HOST_LIBRARY});
  if (root.empty() || library.empty())
    return "the runtime's headers or library are missing: looked for " SLUICE_SOURCE_DIR " and " SLUICE_HOST_LIBRARY;
  const char *chosen = std::getenv("CXX");
  auto compiler = llvm::sys::findProgramByName(chosen && *chosen ? chosen : "c++");
  if (!compiler)
    return std::string("there is no C++ compiler '") + (chosen && *chosen ? chosen : "c++") + "' to build the program with; set CXX";
  llvm::SmallString<128> log;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("sluicec", "log", log))
    return "cannot create a temporary file: " + error.message();
  std::string include = "-I" + root.string(), archive = library.string();
  llvm::SmallVector<llvm::StringRef> arguments = {*compiler, "-std=c++17", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", include, source,
                                                  "-o", executable, archive, SLUICE_DNNL_LIBRARY, "-lgomp", "-lpthread"};
  llvm::SmallVector<llvm::StringRef> sanitize;
#if defined(__x86_64__)
  // GCC before 12.3 miscompiles constants like {1, 1, 0, 0, 0, 0, 0, 0} with 512-bit vectors; kernels that wait for memory lose nothing.
  arguments.push_back("-mprefer-vector-width=256");
#endif
  if (llvm::StringRef(SLUICE_SANITIZE_FLAG).size())
    arguments.push_back(SLUICE_SANITIZE_FLAG);
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(log), llvm::StringRef(log)};
  std::string message;
  int status = llvm::sys::ExecuteAndWait(*compiler, arguments, std::nullopt, redirects, 0, 0, &message);
  auto output = llvm::MemoryBuffer::getFile(log);
  llvm::sys::fs::remove(log);
  if (status == 0)
    return "";
  std::string text = output ? (*output)->getBuffer().take_front(2000).str() : "";
  return "the C++ compiler failed on the emitted program (status " + std::to_string(status) + "): " + message + text;
}

/// CMakeLists.txt of a standalone project; runtime/CMakeLists.txt is the one of the repository.
static std::string projectLists(const std::string &name) {
  return "# Builds the training program with CMake, a C++17 compiler and oneDNN.\n"
         "cmake_minimum_required(VERSION 3.16)\n"
         "project(" + name + " CXX)\n"
         "set(CMAKE_CXX_STANDARD 17)\n"
         "if(NOT CMAKE_BUILD_TYPE)\n  set(CMAKE_BUILD_TYPE Release)\nendif()\n"
         "find_package(Threads REQUIRED)\n"
         "add_library(nlohmann_json INTERFACE)\n"
         "add_library(nlohmann_json::nlohmann_json ALIAS nlohmann_json)\n"
         "target_include_directories(nlohmann_json SYSTEM INTERFACE third_party)\n"
         "include_directories(${CMAKE_SOURCE_DIR})\n"
         "function(sluice_library name)\n  cmake_parse_arguments(ARG \"\" \"\" \"SOURCES;LINK\" ${ARGN})\n"
         "  add_library(${name} STATIC ${ARG_SOURCES})\n  target_link_libraries(${name} PUBLIC ${ARG_LINK})\nendfunction()\n"
         "add_subdirectory(runtime)\n"
         "add_executable(" + name + " program.cpp)\n"
         "target_compile_options(" + name + " PRIVATE -O3 -march=native -ffp-contract=off -fno-math-errno)\n"
         "# GCC before 12.3 miscompiles constants like {1, 1, 0, 0, 0, 0, 0, 0} with 512-bit vectors.\n"
         "if(CMAKE_SYSTEM_PROCESSOR STREQUAL \"x86_64\")\n  target_compile_options(" + name + " PRIVATE -mprefer-vector-width=256)\nendif()\n"
         "target_link_libraries(" + name + " PRIVATE sluice_host)\n"
         "# Weights and templates are looked for beside the executable.\n"
         "file(GLOB data ${CMAKE_SOURCE_DIR}/*.safetensors ${CMAKE_SOURCE_DIR}/*.onnx-template)\n"
         "if(data)\n  file(COPY ${data} DESTINATION ${CMAKE_BINARY_DIR})\nendif()\n";
}

std::string sluice::codegen::writeProjectFiles(const std::string &folder, const std::string &name) {
  fs::path root = sourceRoot();
  if (root.empty())
    return "the runtime's sources are missing: looked for " SLUICE_SOURCE_DIR;
  try {
    fs::copy(root / "runtime", fs::path(folder) / "runtime", fs::copy_options::recursive);
    fs::path json = firstOf({SLUICE_JSON_INCLUDE "/nlohmann"});
    if (json.empty())
      return "the header nlohmann/json.hpp is missing: looked in " SLUICE_JSON_INCLUDE;
    fs::create_directories(fs::path(folder) / "third_party");
    fs::copy(json, fs::path(folder) / "third_party/nlohmann", fs::copy_options::recursive);
    fs::path licence = firstOf({"/usr/share/doc/nlohmann-json3-dev/copyright", SLUICE_JSON_INCLUDE "/../LICENSE.MIT"});
    if (!licence.empty())
      fs::copy_file(licence, fs::path(folder) / "third_party/nlohmann/LICENSE");
  } catch (const fs::filesystem_error &error) {
    return error.what();
  }
  std::error_code error;
  llvm::raw_fd_ostream lists((fs::path(folder) / "CMakeLists.txt").string(), error);
  if (error)
    return "cannot write CMakeLists.txt: " + error.message();
  lists << projectLists(name);
  return "";
}
