// SPDX-License-Identifier: Apache-2.0
// What a library of --emit=library is made of, behind sluice.h. Handles and programs begin with a table of the
// functions that made them: where a process holds several libraries, whose functions have the same names, each handle
// meets its own.
#pragma once

#include "runtime/Inside.h"
#include "runtime/Program.h"
#include "runtime/library/sluice.h"

/// The functions of sluice.h that take a handle, in its order, and what opens one. A later version adds at the end.
struct sluice_functions {
  int abi;
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
};

namespace sluice {

/// Those of this library.
extern const sluice_functions libraryFunctions;
/// The program of this library, which its emitted source defines.
const sluice_program *libraryProgram();

} // namespace sluice

struct sluice_program {
  sluice_program(const sluice::Program &program, sluice::Entry entry)
      : functions(&sluice::libraryFunctions), program(program), entry(std::move(entry)) {}

  const sluice_functions *const functions;
  const sluice::Program &program;
  const sluice::Entry entry;
};
