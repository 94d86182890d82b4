// SPDX-License-Identifier: Apache-2.0
// Ranks are small: the plain product takes less time than writing the file.

#include "runtime/program/Adapters.h"

#include "runtime/Errors.h"
#include "runtime/program/TensorIO.h"

#include <algorithm>
#include <cmath>
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

/// As a product has it, whichever way it lies in its variable, which may have weights [outputs, ...] of a convolution.
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
    rows = tensor.shape[0];
    columns = tensor.shape.elements() / rows;
    if (transposed)
      std::swap(rows, columns);
  }
  size_t place(int64_t row, int64_t column) const {
    return static_cast<size_t>(transposed ? column * rows + row : row * columns + column);
  }
  double at(int64_t row, int64_t column) const { return static_cast<double>(values[place(row, column)]); }
};

/// Of the weights of an output, `valueAt` which are [inputs, outputs].
template <typename ValueAt> double lengthOf(int64_t inputs, int64_t output, ValueAt valueAt) {
  double squares = 0;
  for (int64_t row = 0; row < inputs; ++row)
    squares += valueAt(row, output) * valueAt(row, output);
  return std::sqrt(squares);
}

/// The sum of a base and its adapter, row-major as the base lies, brought to lengths.
void bringTo(const Matrix &base, const Matrix &magnitude, std::vector<double> &sum) {
  for (int64_t column = 0; column < base.columns; ++column) {
    const double length =
        lengthOf(base.rows, column, [&](int64_t row, int64_t at) { return sum[base.place(row, at)]; });
    for (int64_t row = 0; row < base.rows; ++row)
      sum[base.place(row, column)] *= static_cast<double>(magnitude.values[static_cast<size_t>(column)]) / length;
  }
}

} // namespace

std::vector<float> baseLengths(Session &session, const Program &program, const Variable &magnitude) {
  const auto adapter =
      std::find_if(program.adapters, program.adapters + program.adapterCount,
                   [&](const Adapter &each) { return each.magnitude && !std::strcmp(each.magnitude, magnitude.name); });
  if (adapter == program.adapters + program.adapterCount)
    throw std::logic_error(text("'", magnitude.name, "' is no adapter's magnitude"));
  const Matrix base(session, program, adapter->base, adapter->baseTransposed);
  std::vector<float> lengths;
  for (int64_t column = 0; column < base.columns; ++column)
    lengths.push_back(
        static_cast<float>(lengthOf(base.rows, column, [&](int64_t row, int64_t at) { return base.at(row, at); })));
  return lengths;
}

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
    for (int64_t row = 0; row < base.rows; ++row)
      for (int64_t column = 0; column < base.columns; ++column) {
        double product = 0;
        for (int64_t k = 0; k < first.columns; ++k)
          product += first.at(row, k) * second.at(k, column);
        sum[base.place(row, column)] += adapter.scale * product;
      }
    if (adapter.magnitude)
      bringTo(base, Matrix(session, program, adapter.magnitude, false), sum);
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
  return isSecond(name) ||
         std::any_of(program.adapters, program.adapters + program.adapterCount, [&](const Adapter &adapter) {
           return name == adapter.first || (adapter.magnitude && name == adapter.magnitude);
         });
}

const std::vector<float> *MergedWeights::find(const std::string &name) const {
  const auto found = bases.find(name);
  return found == bases.end() ? nullptr : &found->second;
}

} // namespace sluice
