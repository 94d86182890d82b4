// SPDX-License-Identifier: Apache-2.0
// Lines are built by the JSON library, numbers in the shortest form that reads back as the same bits.

#include "runtime/program/Log.h"

#include "runtime/files/File.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice {

using Json = nlohmann::ordered_json;

static std::string dump(const Json &json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string jsonString(const std::string &value) { return dump(Json(value)); }

double shortest(float value) {
  char digits[64];
  auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  double result = value;
  if (error == std::errc() && std::isfinite(value))
    std::from_chars(digits, end, result);
  return result;
}

std::string exactText(double value) {
  char digits[64];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

void Log::open(const std::string &name) {
  path = name;
  // Without O_NONBLOCK a pipe that nobody reads would block here; once it is open, a reader may be as slow as it likes.
  descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (descriptor < 0 && errno == ENXIO)
    throw DataError(text("cannot write log ", path, ": nobody reads this pipe; start its reader first"));
  if (descriptor < 0 || fcntl(descriptor, F_SETFL, O_WRONLY) != 0)
    throw systemError("write log", path);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw DataError(text("cannot write log ", path, ": another program writes to it"));
}

Log::~Log() {
  if (descriptor >= 0)
    close(descriptor);
}

void Log::write(const char *event, const LogFields &fields) {
  if (descriptor < 0)
    return;
  Json json = {{"event", event}};
  for (const auto &field : fields)
    std::visit([&, name = field.first](const auto &value) { json[name] = value; }, field.second);
  std::string line = dump(json) + "\n";
  struct stat status;
  if (!begun && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && ftruncate(descriptor, 0) != 0)
    throw systemError("write log", path);
  begun = true;
  for (size_t done = 0; done < line.size();) {
    ssize_t put = ::write(descriptor, line.data() + done, line.size() - done);
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      throw DataError(text("cannot write log ", path, ": ", put < 0 ? std::strerror(errno) : "it takes no more bytes"));
    done += static_cast<size_t>(put);
  }
}

} // namespace sluice
