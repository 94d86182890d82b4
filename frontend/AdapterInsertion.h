// SPDX-License-Identifier: Apache-2.0
// --adapter: LoRA or DoRA beside weights of a model that has none. The graph gets the nodes and initializers that a
// model exported with adapters would have, so that import, names, export and merging know no other kind.
#ifndef SLUICE_FRONTEND_ADAPTER_INSERTION_H
#define SLUICE_FRONTEND_ADAPTER_INSERTION_H

#include "frontend/OnnxFile.h"
#include "frontend/TrainingSpec.h"

namespace sluice {

/// Beside y = x W, of each weight W that the request targets, y gains scale * (dropout(x) A^T) B^T (Hu et al., LoRA,
/// 2021, section 4.1), with A [rank, inputs] and B [outputs, rank] as PEFT has them, named NAME.lora_A.weight and
/// NAME.lora_B.weight where W is NAME.weight; beside a convolution A is one with its windows to `rank` channels, B one
/// over single pixels. With a magnitude (DoRA) what reads W + scale * A B is brought to the lengths
/// NAME.lora_magnitude_vector by outputs. Layers that share a weight share its adapter. The initializers hold
/// zeros: A's first values are drawn when a program starts, lengths computed. `spec.adapter` is set;
/// `spec.adapterParts` gets the new tensors, `spec.detached` what no gradient passes. Returns what was done, in a line.
/// An error when nothing is targeted, or when the rank is not below a weight's extents.
Result<std::string> insertAdapters(OnnxFile &file, TrainingSpec &spec);

} // namespace sluice

#endif
