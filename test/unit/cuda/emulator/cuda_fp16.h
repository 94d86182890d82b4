// SPDX-License-Identifier: Apache-2.0
// CUDA's half precision: only device code uses it, which here takes the portable rules of runtime/kernels.
#pragma once
