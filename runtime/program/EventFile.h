// SPDX-License-Identifier: Apache-2.0
// --tensorboard: scalars, images and hyperparameters in an event file that TensorBoard reads while it grows. A file is
// a sequence of TFRecords (length, masked CRC-32C of it, bytes, masked CRC-32C of them), each an Event message of
// tensorflow/core/util/ event.proto with a Summary of values.
#pragma once

#include "runtime/data/Image.h"
#include "runtime/program/Log.h"

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
  /// The same for an image of three channels; the description stands below it.
  void writeImage(int64_t step, const std::string &tag, const Image &image, const std::string &description);
  /// What the page "hparams" compares runs by: the fields that are numbers, words, true or false.
  void writeHyperparameters(const std::vector<std::pair<std::string, LogValue>> &fields);

private:
  void writeSummary(int64_t step, const std::string &summary);
  void writeRecord(const std::string &event);

  std::string path;
  int descriptor = -1;
};

} // namespace sluice
