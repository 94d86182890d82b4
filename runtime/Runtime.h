// SPDX-License-Identifier: Apache-2.0
// The whole API that generated programs call. Two runtimes implement it with the same file names: runtime/host and
// runtime/cuda.
#pragma once

#include "runtime/Attention.h"
#include "runtime/Codec.h"
#include "runtime/Collective.h"
#include "runtime/ConvNorm.h"
#include "runtime/CtcLoss.h"
#include "runtime/Dequantize.h"
#include "runtime/Embedding.h"
#include "runtime/Fused.h"
#include "runtime/Gather.h"
#include "runtime/Join.h"
#include "runtime/Kernels.h"
#include "runtime/KeyCache.h"
#include "runtime/LossAndGradient.h"
#include "runtime/LossScale.h"
#include "runtime/MatmulGelu.h"
#include "runtime/Program.h"
#include "runtime/Recurrence.h"
#include "runtime/Selection.h"
#include "runtime/Stream.h"
#include "runtime/Tensor.h"
#include "runtime/Update.h"
#include "runtime/Version.h"

#ifdef SLUICE_COMPILER // a flag of sluicec, and of the projects that it writes
const char sluice::compilerVersion[] = SLUICE_COMPILER;
#endif
