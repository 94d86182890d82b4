// SPDX-License-Identifier: Apache-2.0
// The handle that sluice.h names.
#pragma once

#include "runtime/library/Model.h"

#include <mutex>
#include <thread>

struct sluice_model {
  const sluice_functions *const functions = &sluice::libraryFunctions; ///< stays the first member
  std::mutex mutex;                                                    ///< of all but Model::cancel()
  std::atomic<std::thread::id> owner = {};                             ///< who holds it
  bool closes = false;                                                 ///< a callback has asked for it
  std::unique_ptr<sluice::Model> model;                                ///< null where it could not be opened
  std::string error, json;
};
