// SPDX-License-Identifier: Apache-2.0
// The list of formats.

#include "runtime/data/Source.h"

#include "runtime/data/ArrayFiles.h"
#include "runtime/data/Synthetic.h"

#include <cstring>

namespace sluice {

int64_t sampleElements(const Input &input) {
  Shape shape = input.staging.shape;
  shape.dims[0] = 1;
  return shape.elements();
}

size_t sampleBytes(const Input &input) {
  return static_cast<size_t>(sampleElements(input)) * byteWidth(input.staging.type);
}

bool isTarget(const Program &program, int input) {
  return input == program.inputCount - 1 && !std::strcmp(program.inputs[input].name, "target");
}

std::unique_ptr<SampleSource> openSource(const std::string &where, const Program &program, uint64_t seed,
                                         bool targets) {
  if (where == "synthetic")
    return std::make_unique<Synthetic>(program, seed);
  return std::make_unique<ArrayFiles>(where, program, targets);
}

} // namespace sluice
