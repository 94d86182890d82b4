// SPDX-License-Identifier: Apache-2.0
// Windows are read at their offset; the last token of one is the first that the next one's input has, so that every
// token but the first is a target once an epoch.

#include "runtime/data/Tokens.h"

#include "runtime/Errors.h"
#include "runtime/Numbers.h"
#include "runtime/files/Npy.h"

#include <algorithm>
#include <cstring>

namespace sluice {

namespace {

struct IdType {
  const char *name;
  size_t width;
  bool isSigned;
};

constexpr IdType idTypes[] = {
    {"uint8", 1, false}, {"uint16", 2, false}, {"uint32", 4, false}, {"int32", 4, true}, {"int64", 8, true}};

std::string typeNames() {
  std::string names;
  for (const IdType &type : idTypes)
    names += text(names.empty() ? "" : ", ", type.name);
  return names;
}

/// The first bytes of a file, in which it shows what it is.
std::string beginOf(const InputFile &file) {
  std::string bytes(std::min<uint64_t>(file.size(), 1 << 16), '\0');
  file.readAt(0, bytes.data(), bytes.size());
  return bytes;
}

/// UTF-8 without control characters: ids have zero bytes, or bytes that are none.
bool looksLikeText(const std::string &bytes) {
  constexpr size_t enough = 32, longest = 4;
  for (size_t at = 0; at < bytes.size();) {
    const auto first = static_cast<unsigned char>(bytes[at]);
    if ((first < 0x20 && !std::strchr("\t\n\r", first)) || first == 0 || first == 0x7f)
      return false;
    const size_t more = first < 0x80 ? 0 : first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc2 ? 1 : longest;
    if (more == longest || first > 0xf4)
      return false;
    for (size_t i = 1; i <= more && at + i < bytes.size(); ++i) // the piece may end within a character
      if ((static_cast<unsigned char>(bytes[at + i]) & 0xc0) != 0x80)
        return false;
    at += 1 + more;
  }
  return bytes.size() >= enough;
}

/// Whether of ids of `width` bytes every second is 0, or has all bits set where the one before is above half of its
/// range: then both together are one id. Not in a file of zeros alone, or of a few.
bool looksTwiceAsWide(const std::string &bytes, size_t width) {
  constexpr size_t enough = 8;
  const size_t pairs = bytes.size() / (2 * width);
  bool any = false;
  for (size_t i = 0; i < pairs; ++i) {
    const char *low = bytes.data() + 2 * i * width, *high = low + width;
    const auto all = [&](char byte) { return std::all_of(high, high + width, [=](char b) { return b == byte; }); };
    if (!all('\0') && !(all('\xff') && (low[width - 1] & 0x80)))
      return false;
    any |= std::any_of(low, low + width, [](char b) { return b != '\0'; });
  }
  return pairs >= enough && any;
}

/// What files begin with that hold something else, and what to do.
const char *otherFormat(const std::string &bytes) {
  static const std::pair<std::string, const char *> known[] = {
      {"\x1f\x8b", "is packed by gzip: unpack it"},
      {"PK\x03\x04", "is an archive, such as .npz or what torch.save writes: save the ids by numpy.save or tofile"},
      {"PAR1", "is a Parquet file: save the ids by numpy.save or tofile"},
      {"ARROW1", "is an Arrow file: save the ids by numpy.save or tofile"}};
  for (const auto &[begin, what] : known)
    if (bytes.compare(0, begin.size(), begin) == 0)
      return what;
  return nullptr;
}

} // namespace

Tokens::Words::Words(const std::string &where) : path(where) {
  const std::pair<const char *, std::string *> options[] = {{",stride=", &stride}, {",type=", &type}};
  for (bool found = true; found;) { // from the end, so that the path may have commas
    found = false;
    for (const auto &[word, value] : options)
      if (const size_t at = path.rfind(word); at != std::string::npos && path.find(',', at + 1) == std::string::npos) {
        if (!value->empty())
          throw UsageError(text("tokens:", where, ": ", std::string(word + 1), " is given twice"));
        *value = path.substr(at + std::strlen(word));
        if (value->empty())
          throw UsageError(text("tokens:", where, ": ", std::string(word + 1),
                                value == &stride ? std::string(" names nothing: stride is a whole number of 1 or more")
                                                 : text(" names nothing: the type is one of ", typeNames())));
        path.resize(at);
        found = true;
      }
  }
}

Tokens::Tokens(const std::string &where, const Program &program, bool targets)
    : Tokens(Words(where), program, targets) {}

Tokens::Tokens(const Words &words, const Program &program, bool targets) : program(program), file(words.path) {
  checkProgram(targets);
  stride = window;
  if (!words.stride.empty() && (!parseNumber(words.stride, stride) || stride < 1))
    throw UsageError(text("tokens:", words.path, ",stride=", words.stride, ": stride is a whole number of 1 or more: ",
                          "how many tokens one window begins behind the other"));
  chooseType(words.type);
  count = window > 0 && tokens > window ? (tokens - 1 - window) / stride + 1 : 0;
}

void Tokens::checkProgram(bool targets) {
  if (program.inputCount > 2 || (program.inputCount == 2 && !isTarget(program, 1)))
    throw DataError(
        text("tokens are one input and its target, this program takes ", takenBy(program), ": use .npy files"));
  window = sampleElements(program.inputs[0]);
  for (int i = 0; i < (targets ? program.inputCount : 1); ++i)
    if (program.inputs[i].staging.type != DataType::I64 || sampleElements(program.inputs[i]) != window)
      throw DataError(text("tokens are whole numbers, as many of the target as of the input; '", program.inputs[i].name,
                           "' takes ", sampleElements(program.inputs[i]),
                           program.inputs[i].staging.type == DataType::I64 ? " integers" : " floats", ", '",
                           program.inputs[0].name, "' ", window));
}

/// Sets width, sign, begin and number of the ids. What is guessed is looked at: ids of another width, or another
/// format, may lie within the range that the model knows.
void Tokens::chooseType(const std::string &said) {
  const std::string &path = file.path();
  if (isNpy(file)) {
    if (!said.empty())
      throw UsageError(text("tokens:", path, ",type=", said, ": a .npy file says its type itself"));
    const NpyIntegers array = readNpyIntegers(file);
    width = static_cast<size_t>(array.width), isSigned = array.isSigned, begin = array.begin, tokens = array.count;
    return;
  }
  const IdType *type = nullptr;
  for (const IdType &one : idTypes)
    type = said == one.name ? &one : type;
  if (!said.empty() && !type)
    throw UsageError(text("tokens:", path, ",type=", said, ": the type is one of ", typeNames()));
  if (endsWith(path, ".u32.bin") || (!endsWith(path, ".u16.bin") && program.inputs[0].upperBound > 65536))
    width = 4;
  if (type)
    width = type->width, isSigned = type->isSigned;
  if (!type && !endsWith(path, ".u32.bin") && !endsWith(path, ".u16.bin")) {
    const std::string bytes = beginOf(file);
    if (const char *what = otherFormat(bytes))
      throw DataError(text(path, " ", what, "; ids are plain numbers, or a .npy file"));
    if (looksLikeText(bytes))
      throw DataError(text(path,
                           " is text: tokens: takes ids, which a tokenizer makes of it; ,type=uint8 takes each of ",
                           "its bytes as an id"));
    const bool four = looksTwiceAsWide(bytes, 4), two = width == 2 && looksTwiceAsWide(bytes, 2);
    if (four || two)
      throw DataError(text(path, ": every second number of ", four ? 4 : 2, " bytes is 0 or a sign, as in a file of ",
                           four ? "int64" : "uint32", ": say so, tokens:", path, four ? ",type=int64" : ",type=uint32",
                           ", or ,type=uint", 8 * width, " if the ids are as they stand"));
  }
  if (file.size() % width != 0)
    throw DataError(text(path, ": ", file.size(), " bytes are no whole number of tokens of ", width,
                         " bytes; ,type= says which they are: ", typeNames()));
  tokens = static_cast<int64_t>(file.size() / width);
}

std::vector<std::string> Tokens::notes() const {
  return {text(file.path(), ": ", tokens, " tokens of ", isSigned ? "int" : "uint", 8 * width)};
}

void Tokens::read(int input, int64_t sample, char *values) const {
  const auto first = static_cast<uint64_t>(sample * stride + (input > 0 ? 1 : 0));
  std::vector<unsigned char> bytes(static_cast<size_t>(window) * width);
  file.readAt(begin + first * width, bytes.data(), bytes.size());
  for (size_t i = 0; i < static_cast<size_t>(window); ++i) {
    const unsigned char *at = bytes.data() + i * width;
    uint64_t id = isSigned && (at[width - 1] & 0x80) ? ~uint64_t{0} : 0;
    for (size_t b = width; b-- > 0;)
      id = id << 8 | at[b];
    std::memcpy(values + i * sizeof id, &id, sizeof id);
  }
}

std::string Tokens::name(int, int64_t sample) const {
  return text(file.path(), ": the window at token ", sample * stride);
}

} // namespace sluice
