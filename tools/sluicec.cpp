// SPDX-License-Identifier: Apache-2.0
// sluicec: ONNX model in, training program out. Parses the command line and drives frontend, passes and codegen; exit
// statuses are 0, 1 bad input, 2 usage, 3 budget infeasible, 4 internal error. Nothing is written to -o unless the
// whole run succeeded.
#include "runtime/Kernels.h"
#include "runtime/files/File.h"
#include "tools/Driver.h"
#include "tools/Failure.h"
#include "tools/MachineProfile.h"
#include "tools/StandardOutput.h"

#include <algorithm>
#include <csignal>

int main(int argc, char **argv) {
  sluice::openStandardStreams();
  std::signal(SIGXFSZ, SIG_IGN); // a limit on file sizes is an error of the write, as a full disk is
  sluice::reportCrashes("sluicec");
  if (sluice::isOpenMPLimited()) // kernels are tried with the program's threads
    sluice::ensureOpenMP(argc, argv);
  sluice::DriverOptions options;
  if (auto status = sluice::parseCommandLine({argv + std::min(argc, 1), argv + argc}, options))
    return sluice::finishOutput("sluicec", *status);
  if (auto status = sluice::failWithoutFolder("sluicec"))
    return *status;
  sluice::chooseDevice(options);
  return sluice::finishOutput("sluicec", sluice::compile(options));
}
