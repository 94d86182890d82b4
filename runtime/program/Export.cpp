// SPDX-License-Identifier: Apache-2.0
// Copies in pieces, then patches in place; the file appears under its name when all of it is on disk.

#include "runtime/program/Export.h"

#include "runtime/files/File.h"
#include "runtime/files/OutputFile.h"
#include "runtime/files/Safetensors.h"
#include "runtime/program/Adapters.h"
#include "runtime/program/HubConfig.h"
#include "runtime/program/Initialize.h"
#include "runtime/program/Peft.h"
#include "runtime/program/TensorIO.h"
#include "runtime/program/WeightNames.h"

#include <optional>
#include <vector>

namespace sluice {

static void checkRange(const Variable &variable, const InputFile &file) {
  uint64_t begin = static_cast<uint64_t>(variable.exportOffset), bytes = variable.asFloats().bytes();
  if (begin > file.size() || bytes > file.size() - begin)
    throw DataError(text(file.path(), ": '", variable.name, "' lies at bytes ", begin, " to ", begin + bytes,
                         ", the file has ", file.size()));
}

/// Passes on a tensor's bytes, row-major, or what it has become by merging.
static void readMerged(Session &session, const Variable &variable, const std::vector<float> *merged,
                       const TensorToWrite::Put &put) {
  if (merged)
    put(merged->data(), merged->size() * sizeof(float));
  else
    readWeights(session, variable, put);
}

static void putTensor(Session &session, const Variable &variable, const std::vector<float> *merged, bool transpose,
                      const TensorToWrite::Put &put) {
  if (!transpose)
    return readMerged(session, variable, merged, put);
  const Tensor tensor = variable.asFloats();
  std::vector<char> rows, columns(tensor.bytes());
  readMerged(session, variable, merged, [&](const void *data, size_t bytes) {
    const char *piece = static_cast<const char *>(data);
    rows.insert(rows.end(), piece, piece + bytes);
  });
  transposeMatrix(rows.data(), columns.data(), tensor.shape[0], tensor.shape[1]);
  put(columns.data(), columns.size());
}

/// Of --export=FILE,merged.
static std::optional<MergedWeights> mergedBy(const WeightFile &to, Session &session, const Program &program) {
  return to.merged ? std::optional<MergedWeights>(std::in_place, session, program) : std::nullopt;
}

/// Parameters, statistics and frozen weights under the names that they have in PyTorch's state_dict, shared ones under
/// each.
static void exportWeights(const WeightFile &to, Session &session, const Program &program,
                          const Preparation &preparation) {
  Metadata metadata = metadataOf(preparation);
  const WeightNames names(to.map, program);
  const std::optional<MergedWeights> merged = mergedBy(to, session, program);
  std::vector<TensorToWrite> tensors;
  for (int i = 0; i < program.variableCount; ++i) {
    const Variable &variable = program.variables[i];
    if (!isModelTensor(variable) || (to.isTrainedOnly() && !isTrained(variable)) ||
        (merged && merged->isAdded(variable.name)))
      continue;
    const Variable &exported = exportedVariable(program, variable);
    const Tensor tensor = exported.asFloats();
    const std::vector<float> *values = merged ? merged->find(variable.name) : nullptr;
    const bool transpose = names(variable).transpose;
    const Shape shape = transpose ? Shape{tensor.shape[1], tensor.shape[0]} : tensor.shape;
    const std::vector<std::string> all = to.peft ? std::vector{peftName(variable.name)} : names(variable).names;
    for (const std::string &name : all)
      tensors.push_back(
          {name, tensor.type, shape, [&session, &exported, values, transpose](const TensorToWrite::Put &put) {
             putTensor(session, exported, values, transpose, put);
           }});
  }
  // "pt": transformers asks for it.
  metadata["format"] = "pt";
  metadata[exportedBy] = program.model;
  writeSafetensors(to.path, metadata, tensors);
  if (to.peft)
    writePeftConfig(to.path, program);
  if (to.config)
    writeHubConfig(to, program, preparation);
}

void checkExport(const WeightFile &to, const Program &program) {
  if (to.skipMismatched)
    throw UsageError("--export: skip-mismatched is an option of --init");
  if (to.merged && to.trainedOnly)
    throw UsageError(text("--export ", to.path,
                          ": merged and trained-only exclude each other: what adapters are added "
                          "to is not trained"));
  if (to.peft && (!to.isSafetensors() || to.map || to.merged))
    throw UsageError(text("--export ", to.path,
                          ": peft is for FILE.safetensors, its names are PEFT's, and its adapters ",
                          "stay apart: leave map and merged out"));
  if (to.peft)
    checkPeft(to.path, program);
  checkHubConfig(to);
  if (to.merged)
    checkMerging(program);
  if (to.isSafetensors())
    return WeightNames(to.map, program).requireDistinct();
  if (to.map)
    throw UsageError(text("--export ", to.path, ": a map is for FILE.safetensors; ONNX keeps the names of the model"));
  if (to.trainedOnly)
    throw UsageError(text("--export ", to.path, ": trained-only is for FILE.safetensors; an ONNX model is whole"));
  InputFile{templateBeside(program)};
}

/// A protobuf field of so many bytes.
static std::string protobufField(char key, const std::string &bytes) {
  std::string field(1, key);
  size_t size = bytes.size();
  for (; size > 0x7f; size >>= 7)
    field += static_cast<char>(0x80 | (size & 0x7f));
  return field + static_cast<char>(size) + bytes;
}

/// Entries of metadata, which may stand at the end of an ONNX file.
static std::string onnxMetadata(const Metadata &metadata) {
  std::string fields;
  for (const auto &[key, value] : metadata)
    fields += protobufField('\x72', protobufField('\x0a', key) + protobufField('\x12', value));
  return fields;
}

void exportModel(const std::string &words, Session &session, const Program &program, const Preparation &preparation) {
  const WeightFile to(words);
  if (to.isSafetensors())
    return exportWeights(to, session, program, preparation);
  const std::string &path = to.path;
  InputFile original(templateBeside(program));
  OutputFile copy(path);
  copyAll(original, copy);
  const std::optional<MergedWeights> merged = mergedBy(to, session, program);
  const std::string added = onnxMetadata(metadataOf(preparation));
  copy.write(added.data(), added.size());
  for (int i = 0; i < program.variableCount; ++i) {
    const Variable &variable = program.variables[i];
    if (variable.exportOffset < 0)
      continue;
    checkRange(variable, original);
    uint64_t at = static_cast<uint64_t>(variable.exportOffset);
    const std::string name = variable.source ? variable.source : variable.name;
    const std::vector<float> zeros(merged && merged->isSecond(name) ? variable.tensor.bytes() / sizeof(float) : 0);
    const std::vector<float> *values = !merged ? nullptr : zeros.empty() ? merged->find(name) : &zeros;
    readMerged(session, variable, values, [&](const void *data, size_t bytes) {
      copy.writeAt(at, data, bytes);
      at += bytes;
    });
  }
  copy.commit();
  original.dropPages();
}

} // namespace sluice
