// SPDX-License-Identifier: Apache-2.0
// Copies in pieces, then patches in place; the file appears under its name when all of it is on disk.

#include "runtime/program/Export.h"

#include "runtime/files/File.h"
#include "runtime/files/OutputFile.h"
#include "runtime/program/TensorIO.h"

#include <algorithm>
#include <vector>

namespace sluice {

static void checkRange(const Variable &variable, const InputFile &file) {
  uint64_t begin = static_cast<uint64_t>(variable.exportOffset), bytes = variable.tensor.bytes();
  if (begin > file.size() || bytes > file.size() - begin)
    throw DataError(text(file.path(), ": '", variable.name, "' lies at bytes ", begin, " to ", begin + bytes,
                         ", the file has ", file.size()));
}

static void copyAll(const InputFile &from, OutputFile &to) {
  std::vector<char> buffer(size_t{1} << 20);
  for (uint64_t at = 0; at < from.size();) {
    size_t bytes = static_cast<size_t>(std::min<uint64_t>(buffer.size(), from.size() - at));
    from.readAt(at, buffer.data(), bytes);
    to.write(buffer.data(), bytes);
    at += bytes;
  }
}

void exportModel(const std::string &path, Session &session, const Program &program) {
  InputFile original(besideExecutable(program.exportTemplate));
  OutputFile copy(path);
  copyAll(original, copy);
  for (int i = 0; i < program.variableCount; ++i) {
    const Variable &variable = program.variables[i];
    if (variable.exportOffset < 0)
      continue;
    checkRange(variable, original);
    uint64_t at = static_cast<uint64_t>(variable.exportOffset);
    readTensor(session, variable.tensor, [&](const void *data, size_t bytes) {
      copy.writeAt(at, data, bytes);
      at += bytes;
    });
  }
  copy.commit();
  original.dropPages();
}

} // namespace sluice
