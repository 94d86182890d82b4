// SPDX-License-Identifier: Apache-2.0
// What a library of --emit=library is made of, behind sluice.h. Handles and programs begin with a table of the
// functions that made them: where a process holds several libraries, whose functions have the same names, each handle
// meets its own.
#pragma once

#include "runtime/Inside.h"
#include "runtime/Program.h"
#include "runtime/library/sluice.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

/// The functions of sluice.h that take a handle, and what opens one. A later version adds at the end, and counts it.
struct sluice_functions {
  int version; ///< SLUICE_ABI, and above its 16 bits how often something was added since
  sluice_status (*open)(const sluice_options *, sluice_model **);
  void (*close)(sluice_model *);
  const char *(*error)(const sluice_model *);
  sluice_status (*set)(sluice_model *, const char *, double);
  sluice_status (*get)(sluice_model *, const char *, double *);
  sluice_status (*step)(sluice_model *, const sluice_tensor *, int, const sluice_tensor *, int, float *);
  int64_t (*steps)(sluice_model *);
  sluice_status (*evaluate)(sluice_model *, const sluice_tensor *, int, const sluice_tensor *, int, const char *,
                            double *, const char **);
  sluice_status (*predict)(sluice_model *, const sluice_tensor *, int, const sluice_output *, int);
  sluice_status (*variables)(sluice_model *, const char **);
  sluice_status (*read)(sluice_model *, const char *, void *, size_t);
  sluice_status (*write)(sluice_model *, const char *, const void *, size_t);
  sluice_status (*save)(sluice_model *, const char *);
  sluice_status (*load)(sluice_model *, const char *);
  sluice_status (*init)(sluice_model *, const char *);
  sluice_status (*exportTo)(sluice_model *, const char *);
  sluice_status (*plan)(sluice_model *, const char **);
  void (*cancel)(sluice_model *);
  // Since 1.
  sluice_status (*dataOpen)(sluice_model *, const char *const *, int, sluice_data **);
  void (*dataClose)(sluice_model *, sluice_data *);
  sluice_status (*dataPlan)(sluice_model *, sluice_data *, const char **);
  sluice_status (*dataStep)(sluice_model *, sluice_data *, int64_t *, float *);
  sluice_status (*dataEvaluate)(sluice_model *, sluice_data *, double *, const char **);
  sluice_status (*dataPredict)(sluice_model *, sluice_data *, const sluice_output *, int);
};

namespace sluice {

struct FileData;
struct OpenedFor;
/// See FileData.h. `flags`: those that a program has for data, as on its command line. `tell` hears what whoever trains
/// should know. Throws as Dataset does, and UsageError for flags that are not of data.
std::unique_ptr<FileData> openFileData(const std::vector<std::string> &flags, const OpenedFor &how,
                                       const std::function<void(const std::string &line)> &tell);
using OpenFileData = decltype(&openFileData);

/// Those of this library.
extern const sluice_functions libraryFunctions;
/// The program of this library, which its emitted source defines.
const sluice_program *libraryProgram();

} // namespace sluice

struct sluice_program {
  /// `openData`: of a library with the formats of files; null: without.
  sluice_program(const sluice::Program &program, sluice::Entry entry, sluice::OpenFileData openData = nullptr)
      : functions(&sluice::libraryFunctions), program(program), entry(std::move(entry)), openData(openData) {}

  const sluice_functions *const functions;
  const sluice::Program &program;
  const sluice::Entry entry;
  const sluice::OpenFileData openData;
};
