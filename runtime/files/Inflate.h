// SPDX-License-Identifier: Apache-2.0
// Compressed files, unpacked before they are read: into a file without a name, which goes with its last descriptor, so
// that samples can be read at their offsets and take no memory.
#pragma once

#include "runtime/files/File.h"

namespace sluice {

enum class Compression { Gzip, Deflate };

/// Unpacks bytes [begin, begin + bytes) of `from` into a file in $TMPDIR or /tmp that goes by `name` in messages.
/// Throws DataError for damaged data and for more than `most` bytes.
InputFile inflate(const InputFile &from, uint64_t begin, uint64_t bytes, Compression compression, uint64_t most,
                  const std::string &name);

} // namespace sluice
