// SPDX-License-Identifier: Apache-2.0
// Lines are built by the JSON library, numbers in the shortest form that reads back as the same bits.

#include "runtime/program/Log.h"

#include "runtime/files/File.h"

#include <algorithm>
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

/// Calls `visit(line, begin, end)` for each whole line of a file, as JSON, with its place, until it returns false. A
/// line that is no object ends it, as one that is longer than any event.
template <typename Visit> static void eachLine(const InputFile &file, Visit visit) {
  constexpr size_t longest = size_t{64} << 20;
  std::vector<char> piece(1 << 20);
  std::string line;
  uint64_t begin = 0;
  for (uint64_t at = 0; at < file.size() && line.size() <= longest; at += piece.size()) {
    const size_t bytes = std::min<uint64_t>(piece.size(), file.size() - at);
    file.readAt(at, piece.data(), bytes);
    for (size_t i = 0; i < bytes; ++i) {
      if (piece[i] != '\n') {
        line += piece[i];
        continue;
      }
      const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (!json.is_object() || !visit(json, begin, at + i + 1))
        return;
      begin = at + i + 1;
      line.clear();
    }
  }
}

/// How much of a former log stays: all of the run that goes on up to the step that it goes on from, nothing of others.
static uint64_t keptBytes(const std::string &path, const Log::Resumed &run) {
  uint64_t kept = 0;
  bool hasStep = run.step == 0;
  eachLine(InputFile(path), [&](const Json &line, uint64_t begin, uint64_t end) {
    const auto has = [&](const char *key, const auto &value) {
      const auto found = line.find(key);
      return found != line.end() && *found == value;
    };
    const auto isAfter = [&](const char *key, int64_t step) {
      const auto found = line.find(key);
      return found != line.end() && found->is_number_integer() && found->get<int64_t>() > step;
    };
    const bool start = has("event", "start"), step = has("event", "step"), evaluation = has("event", "evaluate");
    if (const auto version = line.find("version"); start && version != line.end() && *version != logVersion)
      throw DataError(text("cannot go on with log ", path, ": it is of version ", version->dump(),
                           ", this program's of ", logVersion, "; name another file"));
    if (begin == 0 && (!start || !has("model", run.model) || !has("seed", run.seed)))
      return false;
    const bool later = (begin > 0 && start && isAfter("first_step", run.step)) || (step && isAfter("step", run.step)) ||
                       (evaluation && isAfter("step", run.step - (run.evaluationDue ? 1 : 0)));
    if (later && run.trains)
      return false;
    hasStep |= step && has("step", run.step);
    kept = end;
    return true;
  });
  return hasStep ? kept : 0;
}

void Log::open(const std::string &name, const std::optional<Resumed> &from) {
  path = name;
  resumed = from;
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

/// In a regular file, at the end of what stays of a former one.
void Log::begin() const {
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    return;
  const auto kept = static_cast<off_t>(resumed ? keptBytes(path, *resumed) : 0);
  if (ftruncate(descriptor, kept) != 0 || lseek(descriptor, kept, SEEK_SET) != kept)
    throw systemError("write log", path);
}

void Log::write(const char *event, const LogFields &fields) {
  if (descriptor < 0)
    return;
  Json json = {{"event", event}};
  if (!std::strcmp(event, "start"))
    json["version"] = logVersion;
  for (const auto &field : fields)
    std::visit([&, name = field.first](const auto &value) { json[name] = value; }, field.second);
  std::string line = dump(json) + "\n";
  if (!begun)
    begin();
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
