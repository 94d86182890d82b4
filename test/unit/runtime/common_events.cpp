// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files, read by a reader that shares nothing with the writer: checksums bit by bit, messages by
// their wire format.
#include "test/unit/runtime/TinyProgram.h"

#include <gmock/gmock.h>

using testing::HasSubstr;

namespace {

/// Checksums bit by bit, as RFC 3720 defines them.
uint32_t plainCrc(const std::string &bytes) {
  uint32_t value = ~0u;
  for (char c : bytes) {
    value ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit)
      value = value & 1 ? value >> 1 ^ 0x82f63b78u : value >> 1;
  }
  value = ~value;
  return ((value >> 15) | (value << 17)) + 0xa282ead8u;
}

template <typename Number> Number take(const std::string &bytes, size_t &at) {
  Number value{};
  std::memcpy(&value, bytes.substr(at, sizeof value).data(), sizeof value);
  at += sizeof value;
  return value;
}

/// Fields of a message by number: varints and fixed ones as doubles, others as bytes.
struct Field {
  uint64_t number;
  double value;
  std::string bytes;
};
std::vector<Field> fieldsOf(const std::string &message) {
  std::vector<Field> fields;
  auto varint = [&](size_t &at) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80)
        return value;
    }
  };
  for (size_t at = 0; at < message.size();) {
    const uint64_t tag = varint(at);
    Field field{tag >> 3, 0, ""};
    if ((tag & 7) == 0)
      field.value = static_cast<double>(varint(at));
    else if ((tag & 7) == 1)
      field.value = take<double>(message, at);
    else if ((tag & 7) == 5)
      field.value = static_cast<double>(take<float>(message, at));
    else {
      const uint64_t length = varint(at);
      field.bytes = message.substr(at, length);
      at += length;
    }
    fields.push_back(field);
  }
  return fields;
}

} // namespace

TEST_F(TinyProgram, WritesEventsForTensorBoard) {
  ASSERT_EQ(run("--data data --steps 4 --evaluate data --tensorboard runs/a --log log.jsonl"), 0) << err;
  ASSERT_EQ(run("--data data --steps 4 --tensorboard runs/a"), 0) << err;
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder / "runs/a"))
    names.push_back(entry.path().filename());
  ASSERT_EQ(names.size(), 2u); // each run has its own
  std::sort(names.begin(), names.end());
  EXPECT_THAT(names[0], HasSubstr("tfevents"));
  const std::string bytes = folder.read("runs/a/" + names[0]);
  std::map<std::string, std::map<int64_t, double>> scalars;
  size_t records = 0;
  for (size_t at = 0; at < bytes.size(); ++records) {
    const std::string lengthBytes = bytes.substr(at, 8);
    const auto length = take<uint64_t>(bytes, at);
    ASSERT_EQ(take<uint32_t>(bytes, at), plainCrc(lengthBytes));
    const std::string event = bytes.substr(at, length);
    at += length;
    ASSERT_EQ(take<uint32_t>(bytes, at), plainCrc(event));
    int64_t step = 0;
    for (const Field &field : fieldsOf(event)) {
      if (field.number == 1) {
        EXPECT_GT(field.value, 1.6e9); // seconds since 1970
      }
      if (field.number == 2)
        step = static_cast<int64_t>(field.value);
      if (field.number == 3) {
        EXPECT_EQ(field.bytes, "brain.Event:2");
      }
      if (field.number != 5)
        continue;
      for (const Field &value : fieldsOf(field.bytes)) {
        const std::vector<Field> parts = fieldsOf(value.bytes);
        if (parts.at(0).bytes == "_hparams_/session_start_info") {
          EXPECT_THAT(value.bytes, HasSubstr("hparams"));
          EXPECT_THAT(value.bytes, HasSubstr("optimizer"));
          continue;
        }
        scalars[parts.at(0).bytes][step] = parts.at(1).value;
      }
    }
  }
  EXPECT_EQ(records, 7u); // version, hyperparameters, four steps, one evaluation
  EXPECT_EQ(scalars["train/loss"], losses("log.jsonl"));
  EXPECT_EQ(scalars["train/lr"][4], static_cast<double>(0.01f));
  EXPECT_EQ(scalars["train/samples_per_second"].size(), 4u);
  EXPECT_NEAR(scalars["evaluation/loss"][4], log().at(5)["loss"].get<double>(), 1e-6);
  folder.write("file", "x");
  expectFailure(1, "--data data --tensorboard file/runs", "cannot create file/runs");
}
