// SPDX-License-Identifier: Apache-2.0
// In a file of its own: the linker takes it out of the archive only for a program that does not say it itself.
#include "runtime/Version.h"

const char sluice::compilerVersion[] = "unknown";
