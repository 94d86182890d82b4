// SPDX-License-Identifier: Apache-2.0
// A folder that vanishes with the test, small files in it, and expectations on error messages.
#pragma once

#include "runtime/Tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

struct Folder {
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-test-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
      throw std::runtime_error("cannot make " + pattern);
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder &) = delete;

  std::string operator/(const std::string &name) const { return path + "/" + name; }
  bool has(const std::string &name) const { return std::filesystem::exists(*this / name); }

  std::string write(const std::string &name, const std::string &bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }
  std::string read(const std::string &name) const {
    std::ifstream in(*this / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string path;
};

/// The bytes of plain values, as they lie in memory.
template <typename Value> std::string bytesOf(const std::vector<Value> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(Value)};
}

/// A version 1 .npy file with this dictionary.
inline std::string npyBytes(const std::string &dictionary, const std::string &data) {
  std::string header = dictionary;
  header.resize((10 + header.size() + 64) / 64 * 64 - 10, ' ');
  header.back() = '\n';
  std::string length = {static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  return std::string("\x93NUMPY\x01\x00", 8) + length + header + data;
}

template <typename Value>
std::string npyArray(const std::string &descr, const std::string &shape, const std::vector<Value> &values) {
  return npyBytes("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }", bytesOf(values));
}

/// A safetensors file with this header.
inline std::string safetensorsBytes(const std::string &header, const std::string &data) {
  std::string length(8, '\0');
  for (int i = 0; i < 8; ++i)
    length[static_cast<size_t>(i)] = static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * i));
  return length + header + data;
}

/// Expects an exception of that type whose message contains `part`.
template <typename Error, typename Call> void expectError(Call call, const std::string &part) {
  try {
    call();
    ADD_FAILURE() << "no error, expected one that says: " << part;
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(part));
  }
}

/// Damages a good file in many ways (bytes changed, cut off, repeated) and expects that `open` either works or throws
/// Error.
template <typename Error, typename Open> void expectSurvives(const std::string &good, Open open) {
  Folder folder;
  uint32_t state = 1;
  auto random = [&state](size_t below) {
    state = state * 1664525u + 1013904223u;
    return static_cast<size_t>(state >> 8) % below;
  };
  int opened = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    for (size_t changes = 1 + random(3); changes > 0 && !bytes.empty(); --changes) {
      size_t at = random(bytes.size());
      switch (random(4)) {
      case 0:
        bytes[at] = static_cast<char>(random(256));
        break;
      case 1:
        bytes[at] = "0123456789{}[](),:\"' -"[random(22)];
        break;
      case 2:
        bytes.resize(at);
        break;
      default:
        bytes.insert(at, bytes.substr(at, 1 + random(8)));
      }
    }
    std::filesystem::remove(folder / "damaged"); // some file systems flush a file that is truncated and written again
    try {
      open(folder.write("damaged", bytes));
      ++opened;
    } catch (const Error &) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(opened, 0);
}
