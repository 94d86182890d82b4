// SPDX-License-Identifier: Apache-2.0
// The few fields that are needed are encoded by hand: wall_time (1, double), step (2, varint), file_version (3,
// string), summary (5: value (1: tag (1, string), simple_value (2, float), image (4), metadata (9))). Hyperparameters
// are metadata of a value for the plugin "hparams" (tensorboard/plugins/hparams/plugin_data.proto).

#include "runtime/program/EventFile.h"

#include "runtime/files/Crc32c.h"
#include "runtime/files/File.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace sluice {

namespace {

enum WireType : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

void putVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void putTag(std::string &out, unsigned field, WireType type) { putVarint(out, field << 3 | type); }

/// Numbers stand little-endian, as on all machines that programs run on.
template <typename Number> void putFixed(std::string &out, Number value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void putBytes(std::string &out, unsigned field, const std::string &bytes) {
  putTag(out, field, Bytes);
  putVarint(out, bytes.size());
  out += bytes;
}

std::string eventNow() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  putTag(event, 1, Fixed64);
  putFixed(event, now.count());
  return event;
}

uint32_t maskedChecksum(const std::string &bytes) {
  Crc32c sum;
  sum.add(bytes.data(), bytes.size());
  return (sum.value() >> 15 | sum.value() << 17) + 0xa282ead8u;
}

} // namespace

void EventFile::open(const std::string &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw DataError(text("cannot create ", folder, ": ", error.message()));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  char host[256] = "host";
  if (gethostname(host, sizeof host - 1) != 0 || std::strchr(host, '/'))
    std::strcpy(host, "host");
  path = joinPath(folder, text("events.out.tfevents.", std::chrono::duration_cast<std::chrono::seconds>(now).count(),
                               ".", host, ".", getpid(), ".", now.count() % 1000000000));
  descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0)
    throw systemError("write", path);
  std::string event = eventNow();
  putBytes(event, 3, "brain.Event:2");
  writeRecord(event);
}

EventFile::~EventFile() {
  if (descriptor >= 0)
    close(descriptor);
}

void EventFile::write(int64_t step, const std::vector<std::pair<std::string, double>> &scalars) {
  if (descriptor < 0)
    return;
  std::string summary;
  for (const auto &[tag, number] : scalars) {
    std::string value;
    putBytes(value, 1, tag);
    putTag(value, 2, Fixed32);
    putFixed(value, static_cast<float>(number));
    putBytes(summary, 1, value);
  }
  writeSummary(step, summary);
}

void EventFile::writeImage(int64_t step, const std::string &tag, const Image &image, const std::string &description) {
  if (descriptor < 0)
    return;
  std::string picture, plugin, metadata, value, summary;
  for (const auto &[field, number] : {std::pair{1u, image.height}, {2u, image.width}, {3u, 3}}) { // 3: RGB
    putTag(picture, field, Varint);
    putVarint(picture, static_cast<uint64_t>(number));
  }
  putBytes(picture, 4, encodePng(image));
  putBytes(plugin, 1, "images");
  putBytes(metadata, 1, plugin);
  putBytes(metadata, 3, description);
  putBytes(value, 1, tag);
  putBytes(value, 4, picture);
  putBytes(value, 9, metadata);
  putBytes(summary, 1, value);
  writeSummary(step, summary);
}

namespace {

/// A google.protobuf.Value; empty for lists and tables.
struct ProtobufValue {
  std::string number(double value) const {
    std::string out;
    putTag(out, 2, Fixed64);
    putFixed(out, value);
    return out;
  }
  std::string operator()(int64_t value) const { return number(static_cast<double>(value)); }
  std::string operator()(uint64_t value) const { return number(static_cast<double>(value)); }
  std::string operator()(double value) const { return number(value); }
  std::string operator()(bool value) const {
    std::string out;
    putTag(out, 4, Varint);
    putVarint(out, value);
    return out;
  }
  std::string operator()(const std::string &value) const {
    std::string out;
    putBytes(out, 3, value);
    return out;
  }
  template <typename List> std::string operator()(const std::vector<List> &) const { return ""; }
};

} // namespace

void EventFile::writeHyperparameters(const std::vector<std::pair<std::string, LogValue>> &fields) {
  if (descriptor < 0)
    return;
  std::string start, content, plugin, metadata, value, summary;
  for (const auto &[name, field] : fields) {
    const std::string said = std::visit(ProtobufValue{}, field);
    std::string entry;
    putBytes(entry, 1, name);
    putBytes(entry, 2, said);
    if (!said.empty())
      putBytes(start, 1, entry);
  }
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  putTag(start, 5, Fixed64);
  putFixed(start, now.count());
  putBytes(content, 3, start);
  putBytes(plugin, 1, "hparams");
  putBytes(plugin, 2, content);
  putBytes(metadata, 1, plugin);
  putBytes(value, 1, "_hparams_/session_start_info");
  putBytes(value, 9, metadata);
  putBytes(summary, 1, value);
  writeSummary(0, summary);
}

void EventFile::writeSummary(int64_t step, const std::string &summary) {
  std::string event = eventNow();
  putTag(event, 2, Varint);
  putVarint(event, static_cast<uint64_t>(step));
  putBytes(event, 5, summary);
  writeRecord(event);
}

/// In one write, so that a reader of a growing file seldom meets a part of a record.
void EventFile::writeRecord(const std::string &event) {
  std::string length, record;
  putFixed(length, static_cast<uint64_t>(event.size()));
  record = length;
  putFixed(record, maskedChecksum(length));
  record += event;
  putFixed(record, maskedChecksum(event));
  for (size_t done = 0; done < record.size();) {
    const ssize_t put = ::write(descriptor, record.data() + done, record.size() - done);
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      throw systemError("write", path);
    done += static_cast<size_t>(put);
  }
}

} // namespace sluice
