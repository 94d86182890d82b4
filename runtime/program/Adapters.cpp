// SPDX-License-Identifier: Apache-2.0
// Ranks are small: the plain product takes less time than writing the file.

#include "runtime/program/Adapters.h"

#include "runtime/Errors.h"
#include "runtime/program/TensorIO.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace sluice {

void checkMerging(const Program &program) {
  if (program.adapterCount == 0)
    throw UsageError("--export: merged adds adapters to their weights, and the model has none that sluicec knows: "
                     "products (x A) B beside x W, as LoRA has for matrices");
  for (int i = 0; i < program.adapterCount; ++i)
    if (const Adapter &adapter = program.adapters[i]; adapter.shared)
      throw UsageError(text("--export: merged: '", adapter.base, "' is read elsewhere, too, where '", adapter.first,
                            "' and '", adapter.second, "' are not added: leave merged out"));
}

const Variable &exportedVariable(const Program &program, const Variable &variable) {
  for (int i = 0; i < program.variableCount; ++i)
    if (const Variable &average = program.variables[i];
        average.source && std::strcmp(average.source, variable.name) == 0)
      return average;
  return variable;
}

namespace {

const Variable &variableOf(const Program &program, const char *name) {
  for (int i = 0; i < program.variableCount; ++i)
    if (std::strcmp(program.variables[i].name, name) == 0)
      return program.variables[i];
  throw std::logic_error(text("no variable '", name, "'"));
}

/// As a product has it, whichever way it lies in its variable.
struct Matrix {
  std::vector<float> values; ///< row-major, as in the variable
  int64_t rows, columns;     ///< of the product's
  bool transposed;

  Matrix(Session &session, const Program &program, const char *name, bool transposed) : transposed(transposed) {
    const Variable &variable = exportedVariable(program, variableOf(program, name));
    const Tensor tensor = variable.asFloats();
    values.reserve(static_cast<size_t>(tensor.shape.elements()));
    readWeights(session, variable, [this](const void *data, size_t bytes) {
      const auto *floats = static_cast<const float *>(data);
      values.insert(values.end(), floats, floats + bytes / sizeof(float));
    });
    rows = tensor.shape[transposed ? 1 : 0];
    columns = tensor.shape[transposed ? 0 : 1];
  }
  float &at(int64_t row, int64_t column) {
    return values[static_cast<size_t>(transposed ? column * rows + row : row * columns + column)];
  }
};

} // namespace

MergedWeights::MergedWeights(Session &session, const Program &program) : program(program) {
  std::map<std::string, std::vector<double>> sums; // several adapters may be of one weight
  for (int i = 0; i < program.adapterCount; ++i) {
    const Adapter &adapter = program.adapters[i];
    Matrix base(session, program, adapter.base, adapter.baseTransposed),
        first(session, program, adapter.first, adapter.firstTransposed),
        second(session, program, adapter.second, adapter.secondTransposed);
    std::vector<double> &sum = sums[adapter.base];
    if (sum.empty())
      sum.assign(base.values.begin(), base.values.end());
    const float *origin = base.values.data();
    for (int64_t row = 0; row < base.rows; ++row)
      for (int64_t column = 0; column < base.columns; ++column) {
        double product = 0;
        for (int64_t k = 0; k < first.columns; ++k)
          product += static_cast<double>(first.at(row, k)) * static_cast<double>(second.at(k, column));
        sum[static_cast<size_t>(&base.at(row, column) - origin)] += adapter.scale * product;
      }
  }
  for (const auto &[name, sum] : sums)
    std::transform(sum.begin(), sum.end(), std::back_inserter(bases[name]),
                   [](double value) { return static_cast<float>(value); });
}

bool MergedWeights::isSecond(const std::string &name) const {
  return std::any_of(program.adapters, program.adapters + program.adapterCount,
                     [&](const Adapter &adapter) { return name == adapter.second; });
}

bool MergedWeights::isAdded(const std::string &name) const {
  return isSecond(name) || std::any_of(program.adapters, program.adapters + program.adapterCount,
                                       [&](const Adapter &adapter) { return name == adapter.first; });
}

const std::vector<float> *MergedWeights::find(const std::string &name) const {
  const auto found = bases.find(name);
  return found == bases.end() ? nullptr : &found->second;
}

} // namespace sluice
