// SPDX-License-Identifier: Apache-2.0
// Weights in fewer bits, on both targets: the bytes and the floats are those of a plain loop whatever the extents and
// groups, errors stay within half a step of a group's scale, and what no scale can tell is refused.
#include "test/unit/runtime/Harness.h"

#include "runtime/Errors.h"

#include <array>
#include <limits>

namespace sluice {
namespace {

using Floats = std::vector<float>;

Floats valuesOf(const Quantization &form) {
  Floats values;
  for (double value : randomNumbers(form.rows * form.columns, 5))
    values.push_back(static_cast<float>(value) * (values.size() % 7 == 0 ? 3.0f : 0.1f));
  if (values.size() > 200) // a group without anything
    for (int64_t i = 0; i < form.group; ++i)
      values[static_cast<size_t>(form.dimension == 0 ? i % form.rows * form.columns + 1
                                                     : std::min(i, form.columns - 1))] = 0;
  return values;
}

std::string formOf(const Quantization &form, const Floats &values) {
  return quantized(form, "w", [&](size_t first, void *to, size_t bytes) {
    memcpy(to, reinterpret_cast<const char *>(values.data()) + first, bytes);
  });
}

/// The scale of an element's group, the number that is kept of it and what that stands for, element by element.
struct Plain {
  float scale;
  int code;
  float value;
};

/// The numbers of NF4 as QLoRA's appendix has them.
constexpr float normalFloats[] = {-1.0f,
                                  -0.6961928009986877f,
                                  -0.5250730514526367f,
                                  -0.39491748809814453f,
                                  -0.28444138169288635f,
                                  -0.18477343022823334f,
                                  -0.09105003625154495f,
                                  0.0f,
                                  0.07958029955625534f,
                                  0.16093020141124725f,
                                  0.24611230194568634f,
                                  0.33791524171829224f,
                                  0.44070982933044434f,
                                  0.5626170039176941f,
                                  0.7229568362236023f,
                                  1.0f};

Plain plainOf(const Quantization &form, const Floats &values, int64_t row, int64_t column) {
  const int64_t along = form.dimension == 0 ? row : column, extent = form.dimension == 0 ? form.rows : form.columns;
  const int64_t begin = along / form.group * form.group, end = std::min(begin + form.group, extent);
  const auto at = [&](int64_t i) {
    return values[static_cast<size_t>(form.dimension == 0 ? i * form.columns + column : row * form.columns + i)];
  };
  float least = 0, most = 0;
  for (int64_t i = begin; i < end; ++i) {
    least = std::min(least, at(i));
    most = std::max(most, at(i));
  }
  const float largest = std::max(-least, most), own = at(along);
  const int half = 1 << (form.bits - 1);
  if (form.coding == Coding::NormalFloat) {
    int code = 7;
    for (int i = 0; i < 16 && largest > 0; ++i)
      if (std::fabs(own / largest - normalFloats[i]) < std::fabs(own / largest - normalFloats[code]))
        code = i;
    return {largest, code, normalFloats[code] * largest};
  }
  if (form.coding == Coding::Symmetric) {
    const float scale = largest / static_cast<float>(half - 1);
    const int number = scale > 0 ? static_cast<int>(std::nearbyint(own / scale)) : 0;
    return {scale, number + half, static_cast<float>(number) * scale};
  }
  const float scale = static_cast<float>((static_cast<double>(most) - static_cast<double>(least)) / (2 * half - 1));
  if (scale == 0)
    return {0, 0, 0};
  const float zero = std::nearbyint(-least / scale);
  const int code = std::clamp(static_cast<int>(std::nearbyint(own / scale) + zero), 0, 2 * half - 1);
  return {scale, code, (static_cast<float>(code) - zero) * scale};
}

int storedOf(const Quantization &form, const std::string &bytes, int64_t row, int64_t column) {
  const int64_t width = form.rowBytes();
  const auto byte = static_cast<uint8_t>(bytes[static_cast<size_t>(form.elementsAt() + row * width + column % width)]);
  return form.bits == 8 ? byte : column < width ? byte & 15 : byte >> 4;
}

struct Numbering {
  int bits;
  Coding coding;
};

/// Extents that are even, odd and one, groups that divide them, do not, and are longer than they are.
std::vector<Quantization> forms() {
  std::vector<Quantization> list;
  for (auto [bits, coding] : {Numbering{8, Coding::Symmetric},
                              {4, Coding::Symmetric},
                              {8, Coding::Asymmetric},
                              {4, Coding::Asymmetric},
                              {4, Coding::NormalFloat}})
    for (int dimension : {0, 1})
      for (auto [rows, columns, group] : {std::array<int64_t, 3>{64, 64, 64},
                                          {70, 33, 16},
                                          {33, 70, 7},
                                          {1, 1, 64},
                                          {5, 8, 64},
                                          {300, 136, 32},
                                          {3, 9000, 128},
                                          {700, 12, 6}})
        list.push_back({bits, group, dimension, rows, columns, coding});
  return list;
}

std::string nameOf(const Quantization &form) { return text(form.rows, "x", form.columns, " in ", describe(form)); }

TEST(Dequantize, KeepsWhatAPlainLoopKeeps) {
  for (const Quantization &form : forms()) {
    const Floats values = valuesOf(form);
    const std::string bytes = formOf(form, values);
    ASSERT_EQ(bytes.size(), static_cast<size_t>(form.bytes())) << nameOf(form);
    for (int64_t row = 0; row < form.rows; ++row)
      for (int64_t column = 0; column < form.columns; ++column)
        ASSERT_EQ(storedOf(form, bytes, row, column), plainOf(form, values, row, column).code)
            << nameOf(form) << " at " << row << ", " << column;
  }
}

void expectFloats(const Quantization &form, DataType type) {
  const Floats values = valuesOf(form);
  const std::string bytes = formOf(form, values);
  Harness h;
  const Dequantize kernel("w", {form.rows, form.columns}, form.bits, form.group, form.dimension, form.coding);
  const Tensor packed = h.tensor({form.bytes()}, Layout::RowMajor, DataType::U8),
               y = h.tensor({form.rows, form.columns}, Layout::RowMajor, type);
  h.session.write(packed, bytes.data());
  kernel.run(h.session.compute, packed, y);
  const Numbers got = h.read(y);
  for (int64_t row = 0; row < form.rows; ++row)
    for (int64_t column = 0; column < form.columns; ++column) {
      const Plain plain = plainOf(form, values, row, column);
      const float restored = plain.value;
      const size_t at = static_cast<size_t>(row * form.columns + column);
      const float wanted = type == DataType::BF16 ? widened(bfloat16Of(restored)) : restored;
      ASSERT_EQ(got[at], static_cast<double>(wanted)) << nameOf(form) << " at " << row << ", " << column;
      const float step = form.coding == Coding::NormalFloat ? 0.304f : 1; // the widest between two of its numbers
      ASSERT_LE(std::fabs(restored - values[at]), plain.scale * step * 0.5001f) << nameOf(form);
    }
}

TEST(Dequantize, RestoresFloats) {
  for (const Quantization &form : forms())
    expectFloats(form, DataType::F32);
}

TEST(Dequantize, RestoresHalves) {
  for (const Quantization &form : forms())
    expectFloats(form, DataType::BF16);
}

/// Ids that repeat, and leave rows out.
TEST(Dequantize, TakesTheRowsThatIdsName) {
  for (const Quantization &form : forms()) {
    const std::string bytes = formOf(form, valuesOf(form));
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < 9; ++i)
      ids.push_back(i * i * 7 % form.rows);
    Harness h;
    const Dequantize kernel("w", {form.rows, form.columns}, form.bits, form.group, form.dimension, form.coding);
    const Tensor packed = h.tensor({form.bytes()}, Layout::RowMajor, DataType::U8),
                 all = h.tensor({form.rows, form.columns}), places = h.tensor({3, 3}, Layout::RowMajor, DataType::I64),
                 y = h.tensor({3, 3, form.columns});
    h.session.write(packed, bytes.data());
    h.session.write(places, ids.data());
    kernel.run(h.session.compute, packed, all);
    kernel.rows(h.session.compute, packed, places, y);
    const Numbers matrix = h.read(all), got = h.read(y);
    for (int64_t i = 0; i < 9 * form.columns; ++i)
      ASSERT_EQ(
          got[static_cast<size_t>(i)],
          matrix[static_cast<size_t>(ids[static_cast<size_t>(i / form.columns)] * form.columns + i % form.columns)])
          << nameOf(form);
  }
}

TEST(Dequantize, KnowsNoRowBeyondTheMatrix) {
  for (int64_t wrong : {int64_t(-1), int64_t(4)}) {
    Harness h;
    const Quantization form{8, 4, 1, 4, 4};
    const Dequantize kernel("/words/Gather", {4, 4}, 8, 4, 1);
    const Tensor packed = h.tensor({form.bytes()}, Layout::RowMajor, DataType::U8), ids = h.classes({1, wrong}),
                 y = h.tensor({2, 4});
    h.session.write(packed, formOf(form, Floats(16, 1.0f)).data());
    kernel.rows(h.session.compute, packed, ids, y);
    try {
      h.session.synchronize();
      FAIL();
    } catch (const DataError &error) {
      EXPECT_EQ(std::string(error.what()), text("embedding '/words/Gather': id ", wrong,
                                                " at position 1 of this batch, must lie between 0 and 3"));
    }
  }
}

/// What exports and merged adapters read is what kernels give.
TEST(Dequantize, GivesFilesTheSameFloats) {
  for (const Quantization &form : forms()) {
    const Floats values = valuesOf(form);
    const std::string bytes = formOf(form, values);
    Floats floats;
    dequantize(form, bytes.data(), [&](const void *data, size_t size) {
      const auto *some = static_cast<const float *>(data);
      floats.insert(floats.end(), some, some + size / sizeof(float));
    });
    ASSERT_EQ(floats.size(), values.size());
    for (int64_t i = 0; i < form.rows * form.columns; ++i) {
      ASSERT_EQ(floats[static_cast<size_t>(i)], plainOf(form, values, i / form.columns, i % form.columns).value)
          << nameOf(form);
    }
  }
}

TEST(Dequantize, RoundsToHalvesWithoutScales) {
  const Quantization form{16, 0, 0, 3, 5};
  const Floats values = valuesOf({16, 1, 0, 3, 5});
  const std::string bytes = formOf(form, values);
  ASSERT_EQ(bytes.size(), 30u);
  size_t at = 0;
  dequantize(form, bytes.data(), [&](const void *data, size_t size) {
    for (size_t i = 0; i < size / sizeof(float); ++i, ++at)
      EXPECT_EQ(static_cast<const float *>(data)[i], widened(bfloat16Of(values[at])));
  });
  EXPECT_EQ(at, values.size());
}

/// Evenly spread numbers are off by scale / sqrt(12), the root of the mean of their squares is largest / sqrt(3).
TEST(Dequantize, TellsTheRelativeError) {
  Floats even;
  for (int i = 0; i < 4096; ++i)
    even.push_back(static_cast<float>(i * 2654435761u % 4096) / 2048 - 1);
  for (const auto &[bits, error] : {std::pair{8, 0.5 / 127}, {4, 0.5 / 7}}) {
    const double told = relativeError({bits, 64, 1, 64, 64}, "w", [&](size_t first, void *to, size_t bytes) {
      memcpy(to, reinterpret_cast<const char *>(even.data()) + first, bytes);
    });
    EXPECT_NEAR(told, error, 0.1 * error) << bits;
  }
}

/// Numbers of one sign use all codes with a zero point, half of them without.
TEST(Dequantize, ZeroPointsServeNumbersOfOneSign) {
  Floats positive;
  for (int i = 0; i < 4096; ++i)
    positive.push_back(static_cast<float>(i * 2654435761u % 4096) / 4096);
  const auto errorOf = [&](Coding coding) {
    return relativeError({4, 64, 1, 64, 64, coding}, "w", [&](size_t first, void *to, size_t bytes) {
      memcpy(to, reinterpret_cast<const char *>(positive.data()) + first, bytes);
    });
  };
  EXPECT_LT(errorOf(Coding::Asymmetric), 0.55 * errorOf(Coding::Symmetric));
}

TEST(Dequantize, RefusesWhatNoScaleTells) {
  Floats values(64, 1.0f);
  for (float odd : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    values[40] = odd;
    try {
      formOf({8, 64, 0, 8, 8}, values);
      FAIL();
    } catch (const DataError &error) {
      EXPECT_STREQ(error.what(), "'w' holds numbers that are not finite, which --frozen=int8 cannot keep: use "
                                 "--frozen=bf16 or leave --frozen out");
    }
  }
}

TEST(Dequantize, RefusesOtherForms) {
  EXPECT_THROW(Dequantize("w", {4, 4}, 3, 64, 0), std::invalid_argument);
  EXPECT_THROW(Dequantize("w", {4, 4}, 8, 0, 0), std::invalid_argument);
  EXPECT_THROW(Dequantize("w", {4, 4}, 8, 64, 2), std::invalid_argument);
  EXPECT_THROW(Dequantize("w", {4}, 8, 64, 0), std::invalid_argument);
  EXPECT_THROW(Dequantize("w", {4, 4}, 8, 64, 0, Coding::NormalFloat), std::invalid_argument);
}

} // namespace
} // namespace sluice
