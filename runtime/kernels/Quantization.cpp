// SPDX-License-Identifier: Apache-2.0
// Into forms of fewer bits and back, some rows at a time, and what both targets' kernels check.
#include "runtime/Dequantize.h"
#include "runtime/Errors.h"
#include "runtime/kernels/BFloat16.h"
#include "runtime/kernels/QuantizationRules.h"

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace sluice {

namespace {

/// Rows that are quantized together: all of a group, or about a megabyte.
int64_t rowsAtATime(const Quantization &form) {
  const int64_t many = std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, form.columns));
  return form.bits == 16 || form.dimension == 1 ? many : (many + form.group - 1) / form.group * form.group;
}

/// Elements of a group: the first of the rows at hand, how many there are, and how far apart.
struct Group {
  int64_t first, count, step;
};

class Quantizing {
public:
  Quantizing(const Quantization &form, const std::string &name)
      : form(form), name(name), bytes(static_cast<size_t>(form.bytes()), '\0') {}

  /// `count` rows of floats, the first of which is row `first`, where a group begins.
  void take(const float *floats, int64_t first, int64_t count) {
    if (form.bits == 16)
      return round(floats, first * form.columns, count * form.columns);
    float *scales = reinterpret_cast<float *>(bytes.data());
    if (form.dimension == 1)
      for (int64_t r = 0; r < count; ++r)
        for (int64_t g = 0; g < form.scaleColumns(); ++g)
          quantize(floats, first,
                   {r * form.columns + g * form.group, std::min(form.group, form.columns - g * form.group), 1},
                   scales[(first + r) * form.scaleColumns() + g]);
    else
      for (int64_t r = 0; r < count; r += form.group)
        for (int64_t c = 0; c < form.columns; ++c)
          quantize(floats, first, {r * form.columns + c, std::min(form.group, count - r), form.columns},
                   scales[(first + r) / form.group * form.columns + c]);
  }

  std::string finish() { return std::move(bytes); }

private:
  void round(const float *floats, int64_t first, int64_t count) {
    auto *to = reinterpret_cast<BFloat16 *>(bytes.data()) + first;
    for (int64_t i = 0; i < count; ++i)
      to[i] = bfloat16Of(floats[i]);
  }

  void quantize(const float *floats, int64_t firstRow, Group group, float &scale) {
    float least = 0, most = 0;
    bool finite = true;
    for (int64_t i = 0; i < group.count; ++i) {
      const float value = floats[group.first + i * group.step];
      finite &= std::isfinite(value);
      least = std::min(least, value);
      most = std::max(most, value);
    }
    if (!finite)
      throw DataError(text("'", name, "' holds numbers that are not finite, which --frozen=", form.name(),
                           " cannot keep: use --frozen=bf16 or leave --frozen out"));
    const float zero = scaleOf(least, most, scale);
    if (form.coding == Coding::Asymmetric)
      (&scale)[form.scales()] = zero;
    for (int64_t i = 0; i < group.count; ++i) {
      const int64_t at = group.first + i * group.step;
      putCode(form, bytes.data(), firstRow + at / form.columns, at % form.columns,
              codeOf(scale > 0 ? floats[at] / scale : 0.0f, zero));
    }
  }

  /// Fills in the scale of numbers from `least`, 0 or below, to `most`, 0 or above; returns what code stands for 0.
  float scaleOf(float least, float most, float &scale) const {
    const int half = 1 << (form.bits - 1), all = 2 * half - 1;
    const float largest = std::max(-least, most);
    if (form.coding == Coding::NormalFloat)
      scale = largest;
    else if (form.coding == Coding::Symmetric)
      scale = largest / static_cast<float>(half - 1);
    else // the difference may be more than a float holds
      scale = static_cast<float>((static_cast<double>(most) - static_cast<double>(least)) / all);
    if (form.coding != Coding::Asymmetric)
      return static_cast<float>(half);
    return scale > 0 ? std::min(std::nearbyint(-least / scale), static_cast<float>(all)) : 0.0f;
  }

  /// Of what the nearest number stands for `value` scales.
  int codeOf(float value, float zero) const {
    if (form.coding == Coding::NormalFloat)
      return nearestNormalFloat(value);
    const int least = form.coding == Coding::Symmetric ? 1 : 0, most = (1 << form.bits) - 1;
    return std::min(most, std::max(least, static_cast<int>(std::nearbyint(value) + zero)));
  }

  static int nearestNormalFloat(float value) {
    using Nf4 = Code<4, Coding::NormalFloat>;
    int code = 0;
    while (code < 15 && value > 0.5f * (Nf4::normalFloat(code) + Nf4::normalFloat(code + 1)))
      ++code;
    return code;
  }

  const Quantization &form;
  const std::string &name;
  std::string bytes;
};

void restoreRows(const Quantization &form, const char *bytes, int64_t first, int64_t count, float *to) {
  for (int64_t r = 0; r < count; ++r, to += form.columns) {
    if (form.bits != 16)
      forCode(form, [&](auto code) {
        restoreRow(code, form, bytes, first + r, 0, form.columns,
                   [to](int64_t column, float value) { to[column] = value; });
      });
    else
      for (int64_t c = 0; c < form.columns; ++c)
        to[c] = widened(reinterpret_cast<const BFloat16 *>(bytes)[(first + r) * form.columns + c]);
  }
}

/// Calls work(first, count) for some rows after the other.
template <typename Work> void forRows(const Quantization &form, Work &&work) {
  const int64_t many = rowsAtATime(form);
  for (int64_t first = 0; first < form.rows; first += many)
    work(first, std::min(many, form.rows - first));
}

} // namespace

std::string describe(const Quantization &form) {
  return form.bits == 16 ? form.name() : text(form.name(), " in groups of ", form.group, " along ", form.dimension);
}

std::string formKey(const std::string &name) { return "form:" + name; }

std::string quantized(const Quantization &form, const std::string &name, const GiveFloats &give) {
  Quantizing quantizing(form, name);
  std::vector<float> floats;
  forRows(form, [&](int64_t first, int64_t count) {
    floats.resize(static_cast<size_t>(count * form.columns));
    give(static_cast<size_t>(first * form.columns) * sizeof(float), floats.data(), floats.size() * sizeof(float));
    quantizing.take(floats.data(), first, count);
  });
  return quantizing.finish();
}

void dequantize(const Quantization &form, const char *bytes, const TakeFloats &take) {
  std::vector<float> floats;
  forRows(form, [&](int64_t first, int64_t count) {
    floats.resize(static_cast<size_t>(count * form.columns));
    restoreRows(form, bytes, first, count, floats.data());
    take(floats.data(), floats.size() * sizeof(float));
  });
}

double relativeError(const Quantization &form, const std::string &name, const GiveFloats &give) {
  const std::string bytes = quantized(form, name, give);
  double lost = 0, all = 0;
  size_t at = 0;
  std::vector<float> own;
  dequantize(form, bytes.data(), [&](const void *data, size_t size) {
    const auto *floats = static_cast<const float *>(data);
    own.resize(size / sizeof(float));
    give(at, own.data(), size);
    at += size;
    for (size_t i = 0; i < own.size(); ++i) {
      const double value = static_cast<double>(own[i]), difference = value - static_cast<double>(floats[i]);
      lost += difference * difference;
      all += value * value;
    }
  });
  return all > 0 ? std::sqrt(lost / all) : 0;
}

Quantization formOf(Node node, const Shape &matrix, int64_t bits, int64_t group, int64_t dimension, Coding coding) {
  const bool halves = bits == 16 && group == 0 && dimension == 0 && coding == Coding::Symmetric;
  const bool groups = (bits == 8 || bits == 4) && group >= 1 && (dimension == 0 || dimension == 1) &&
                      (coding != Coding::NormalFloat || bits == 4);
  if (matrix.rank != 2 || (!halves && !groups))
    throw std::invalid_argument(text("'", node, "': no matrix of rank ", matrix.rank, " is held in ", bits,
                                     " bits by groups of ", group, " along dimension ", dimension));
  return {static_cast<int>(bits), group, static_cast<int>(dimension), matrix[0], matrix[1], coding};
}

Dequantize::Dequantize(Node node, Shape matrix, int64_t bits, int64_t group, int64_t dimension, Coding coding)
    : Kernel(node), matrix(formOf(node, matrix, bits, group, dimension, coding)) {
  if (bits == 16)
    throw std::invalid_argument(text("'", node, "': halves are floats by a cast"));
}

} // namespace sluice
