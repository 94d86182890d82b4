// SPDX-License-Identifier: Apache-2.0
// zlib, a piece at a time. A byte of deflated data stands for 1032 bytes at most; `most` is what the file says of
// itself or may be at all.

#include "runtime/files/Inflate.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <unistd.h>
#include <vector>
#include <zlib.h>

namespace sluice {

namespace {

struct Inflater {
  z_stream state = {};
  /// Window bits of 15, negative for data without a head, 16 more for gzip's head.
  explicit Inflater(Compression compression) {
    if (inflateInit2(&state, compression == Compression::Gzip ? 15 + 16 : -15) != Z_OK)
      throw std::bad_alloc();
  }
  Inflater(const Inflater &) = delete;
  ~Inflater() { inflateEnd(&state); }
};

/// A file that no folder shows.
int openUnnamed() {
  const char *chosen = std::getenv("TMPDIR");
  std::string path = joinPath(chosen && *chosen ? chosen : "/tmp", "sluice-data-XXXXXX");
  const int descriptor = mkstemp(path.data());
  if (descriptor < 0)
    throw systemError("make a file to unpack data into:", path);
  unlink(path.c_str());
  return descriptor;
}

void writeAll(int descriptor, const unsigned char *from, size_t bytes, const std::string &name) {
  while (bytes > 0) {
    const ssize_t put = write(descriptor, from, bytes);
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      throw systemError("write to $TMPDIR what is unpacked from", name);
    from += put;
    bytes -= static_cast<size_t>(put);
  }
}

} // namespace

InputFile inflate(const InputFile &from, uint64_t begin, uint64_t bytes, Compression compression, uint64_t most,
                  const std::string &name) {
  const int descriptor = openUnnamed();
  struct Close {
    int descriptor;
    ~Close() { close(descriptor); }
  } close{descriptor};
  Inflater inflater(compression);
  std::vector<unsigned char> in(1 << 16), out(1 << 18);
  uint64_t made = 0;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    if (inflater.state.avail_in == 0 && bytes > 0) {
      const size_t piece = std::min<uint64_t>(in.size(), bytes);
      from.readAt(begin, in.data(), piece);
      inflater.state.next_in = in.data();
      inflater.state.avail_in = static_cast<unsigned>(piece);
      begin += piece;
      bytes -= piece;
    }
    inflater.state.next_out = out.data();
    inflater.state.avail_out = static_cast<unsigned>(out.size());
    status = ::inflate(&inflater.state, Z_NO_FLUSH);
    const size_t piece = out.size() - inflater.state.avail_out;
    if ((status != Z_OK && status != Z_STREAM_END) || (piece == 0 && status == Z_OK && bytes == 0))
      throw DataError(text(name, ": damaged or cut short: it cannot be unpacked behind byte ", made));
    made += piece;
    if (made > most)
      throw DataError(text(name, ": unpacks to more than ", most, " bytes"));
    writeAll(descriptor, out.data(), piece, name);
  }
  return InputFile(dup(descriptor), name);
}

} // namespace sluice
