// SPDX-License-Identifier: Apache-2.0
// CUDA's bfloat16: only device code uses it, which here takes the portable rules of runtime/cuda/Storage.h.
#pragma once
