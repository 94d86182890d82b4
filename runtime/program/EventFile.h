// SPDX-License-Identifier: Apache-2.0
// --tensorboard: scalars in an event file that TensorBoard reads while it grows. A file is a sequence of TFRecords
// (length, masked CRC-32C of it, bytes, masked CRC-32C of them), each an Event message of tensorflow/core/util/
// event.proto with a Summary of simple values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sluice {

class EventFile {
public:
  /// No file: nothing is written.
  EventFile() = default;
  ~EventFile();
  EventFile(const EventFile &) = delete;
  EventFile &operator=(const EventFile &) = delete;

  /// Creates a new file in `folder`, which is created, too; TensorBoard shows all files of a folder as one run. Throws
  /// DataError.
  void open(const std::string &folder);
  bool isOpen() const { return descriptor >= 0; }
  /// One event at this time. Throws DataError when it cannot be written.
  void write(int64_t step, const std::vector<std::pair<std::string, double>> &scalars);

private:
  void writeRecord(const std::string &event);

  std::string path;
  int descriptor = -1;
};

} // namespace sluice
