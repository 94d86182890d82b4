// SPDX-License-Identifier: Apache-2.0
// Copies between the device arena and the file of storage that pack on the way out and unpack on the way back
// (Codec.h). A tensor goes in pieces, so that no packed form of a whole tensor lies in memory.
#include "runtime/host/Codec.h"

#include "runtime/Errors.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/StreamState.h"
#include "runtime/kernels/CodecRules.h"

#include <algorithm>

namespace sluice {

namespace {

constexpr int64_t pieceElements = StorageFile::pieceElements;
// So the forms of pieces take together what that of the whole tensor does: blocks, parts and rounding end with them.
static_assert(pieceElements % int8Block == 0 && 9 * (pieceElements / signBlock) % 64 == 0 &&
              2 * pieceElements % zvcPart == 0);

/// One packed tensor in the file.
struct Slot {
  const StorageFile &file;
  size_t offset;
  Codec codec;
  int64_t elements;
  const char *node;

  /// What begins at that element, as a tensor of its own.
  template <typename T> Tensor pieceAt(int64_t first) const {
    const DataType type = sizeof(T) == 2 ? DataType::BF16 : DataType::F32;
    return device(0, {std::min(pieceElements, elements - first)}, Layout::RowMajor, type);
  }
};

template <typename T> void storePieces(const Slot &slot, const T *x) {
  char *form = slot.file.pieceOfStream();
  size_t at = slot.offset;
  for (int64_t first = 0; first < slot.elements; first += pieceElements) {
    const Tensor piece = slot.pieceAt<T>(first);
    const auto bytes = static_cast<size_t>(packedBytes(slot.codec, piece));
    packForm(slot.codec, x + first, piece, form, slot.node);
    slot.file.write(form, at, bytes);
    at += bytes;
  }
}

template <typename T> void loadPieces(const Slot &slot, T *x) {
  char *form = slot.file.pieceOfStream();
  size_t at = slot.offset;
  for (int64_t first = 0; first < slot.elements; first += pieceElements) {
    const Tensor piece = slot.pieceAt<T>(first);
    const auto bytes = static_cast<size_t>(packedBytes(slot.codec, piece));
    slot.file.read(form, at, bytes);
    unpackForm(slot.codec, form, x + first, piece);
    at += bytes;
  }
}

/// Calls work(element that a piece begins with, its raw bytes, offset of its entry in the table, offset of its place).
template <typename T, typename Work> void forPieces(const Slot &slot, Work &&work) {
  const auto table = static_cast<size_t>(zvcTableBytes(static_cast<int64_t>(sizeof(T)) * slot.elements));
  for (int64_t first = 0; first < slot.elements; first += pieceElements)
    work(first, static_cast<int64_t>(slot.pieceAt<T>(first).bytes()),
         slot.offset + sizeof(int64_t) * static_cast<size_t>(first / pieceElements),
         slot.offset + table + sizeof(T) * static_cast<size_t>(first));
}

/// Returns the bytes that are in use, those of the table included.
template <typename T> size_t storeNonzeros(const Slot &slot, const T *x) {
  char *form = slot.file.pieceOfStream();
  size_t all = 0;
  forPieces<T>(slot, [&](int64_t first, int64_t raw, size_t entry, size_t place) {
    const int64_t packed = packZeroValuesDensely(x + first, raw / static_cast<int64_t>(sizeof(T)), form, raw);
    const int64_t used = std::min(packed, raw);
    slot.file.write(packed < raw ? form : reinterpret_cast<const char *>(x + first), place, static_cast<size_t>(used));
    slot.file.write(reinterpret_cast<const char *>(&used), entry, sizeof(used));
    all += static_cast<size_t>(used) + sizeof(used);
  });
  return all;
}

template <typename T> void loadNonzeros(const Slot &slot, T *x) {
  char *form = slot.file.pieceOfStream();
  forPieces<T>(slot, [&](int64_t first, int64_t raw, size_t entry, size_t place) {
    int64_t used = 0;
    slot.file.read(reinterpret_cast<char *>(&used), entry, sizeof(used));
    if (used <= 0 || used > raw)
      throw std::runtime_error(text("the slot of '", slot.node, "' in the file of --offload-to does not hold what was ",
                                    "written: a piece of ", raw, " bytes has ", used));
    slot.file.read(used < raw ? form : reinterpret_cast<char *>(x + first), place, static_cast<size_t>(used));
    if (used < raw)
      unpackZeroValues(form, static_cast<size_t>(used), raw / static_cast<int64_t>(sizeof(T)), x + first, slot.node,
                       true);
  });
}

Slot slotOf(Stream &stream, const Tensor &packed, const Tensor &raw, const Node &node, Codec codec) {
  if (packed.space != Space::Storage || !packsFor(factsOf(packed.space), codec))
    throw std::invalid_argument(text("'", node.name, "' cannot be packed with ", codecName(codec), " for the ",
                                     factsOf(packed.space).name, " arena by a copy to storage"));
  checkPacked(node, codec, raw, packed, true);
  return {stream.session.impl->fileOf(packed), packed.offset, codec, raw.shape.elements(), node};
}

} // namespace

void copyToStorage(Stream &stream, const Tensor &from, const Tensor &to, Node node, Codec codec) {
  const Slot slot = slotOf(stream, to, from, node, codec);
  Session &session = stream.session;
  forStored(node, from.type, [&](auto *type) {
    const auto *x = stream.data<const Stored<decltype(type)>>(from);
    auto work = [slot, x, raw = from.bytes(), &session] {
      if (slot.codec.kind == Codec::Zvc)
        session.notePacked(raw, storeNonzeros(slot, x));
      else
        storePieces(slot, x);
    };
    stream.launch(node.as(OpRole::Offload, codec), storeName(codec), work, from.bytes());
  });
}

void copyFromStorage(Stream &stream, const Tensor &from, const Tensor &to, Node node, Codec codec) {
  const Slot slot = slotOf(stream, from, to, node, codec);
  forStored(node, to.type, [&](auto *type) {
    auto *x = stream.data<Stored<decltype(type)>>(to);
    auto work = [slot, x] {
      if (slot.codec.kind == Codec::Zvc)
        loadNonzeros(slot, x);
      else
        loadPieces(slot, x);
    };
    stream.launch(node.as(OpRole::Prefetch, codec), loadName(codec), work, to.bytes());
  });
}

} // namespace sluice
