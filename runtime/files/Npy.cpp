// SPDX-License-Identifier: Apache-2.0
// Reads the header: magic, version, length, then a Python dictionary of exactly three keys, for example
//   {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 1, 28, 28), }

#include "runtime/files/Npy.h"

#include <cctype>
#include <cstring>
#include <tuple>
#include <utility>

namespace sluice {

namespace {

/// The few Python literals that a header may consist of.
class Literals {
public:
  Literals(const std::string &text, const std::string &path) : text(text), path(path) {}

  void expect(char c) {
    if (!accept(c))
      fail(std::string("expected '") + c + "'");
  }
  bool accept(char c) {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t'))
      ++at;
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  std::string string() {
    char quote = accept('\'') ? '\'' : '"';
    if (quote == '"')
      expect('"');
    size_t end = text.find(quote, at);
    if (end == std::string::npos)
      fail("a string has no end");
    std::string value = text.substr(at, end - at);
    at = end + 1;
    return value;
  }
  bool boolean() {
    for (const char *word : {"True", "False"})
      if (accept(word[0])) {
        size_t rest = std::strlen(word) - 1;
        if (text.compare(at, rest, word + 1) == 0) {
          at += rest;
          return word[0] == 'T';
        }
        break;
      }
    fail("expected True or False");
  }
  int64_t integer() {
    int64_t value = 0;
    size_t digits = 0;
    accept('+');
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text[at] - '0', &value))
        fail("a dimension is too large");
      ++at;
      ++digits;
    }
    if (digits == 0)
      fail("expected a dimension");
    return value;
  }
  [[noreturn]] void fail(const std::string &what) const {
    throw DataError(::sluice::text(path, ": bad .npy header: ", what, " at character ", at));
  }

private:
  const std::string &text;
  const std::string &path;
  size_t at = 0;
};

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> dims;
};

std::vector<int64_t> parseShape(Literals &in) {
  std::vector<int64_t> dims;
  in.expect('(');
  while (!in.accept(')')) {
    dims.push_back(in.integer());
    if (dims.size() > 32)
      in.fail("more than 32 dimensions");
    if (!in.accept(',')) {
      in.expect(')');
      break;
    }
  }
  return dims;
}

Header parseDictionary(const std::string &text, const std::string &path) {
  Literals in(text, path);
  Header header;
  bool haveDescr = false, haveOrder = false, haveShape = false;
  in.expect('{');
  while (!in.accept('}')) {
    std::string key = in.string();
    in.expect(':');
    bool *have = key == "descr"           ? &haveDescr
                 : key == "fortran_order" ? &haveOrder
                 : key == "shape"         ? &haveShape
                                          : nullptr;
    if (!have)
      in.fail("unknown key '" + key + "'");
    if (*have)
      in.fail("key '" + key + "' is given twice");
    *have = true;
    if (key == "descr" && in.accept('['))
      throw DataError(::sluice::text(path, ": a structured array, whose elements have fields: save each field as an ",
                                     "array of its own, numpy.save(NAME, array[FIELD])"));
    if (key == "descr")
      header.descr = in.string();
    else if (key == "fortran_order")
      header.fortran = in.boolean();
    else
      header.dims = parseShape(in);
    if (!in.accept(',')) {
      in.expect('}');
      break;
    }
  }
  if (!haveDescr || !haveOrder || !haveShape)
    in.fail("a key of descr, fortran_order, shape is missing");
  return header;
}

} // namespace

const char *typeName(DataType type) {
  switch (type) {
  case DataType::F32:
    return "float32";
  case DataType::BF16:
    return "bfloat16";
  case DataType::F16:
    return "float16";
  case DataType::I64:
    return "int64";
  case DataType::I32:
    return "int32";
  case DataType::U8:
    return "uint8";
  case DataType::Bit:
    return "bit";
  }
  return "?";
}

std::string numpyShape(const std::vector<int64_t> &dims) {
  std::string out = "(";
  for (size_t i = 0; i < dims.size(); ++i)
    out += (i ? ", " : "") + std::to_string(dims[i]);
  return out + (dims.size() == 1 ? ",)" : ")");
}

/// What stands between the fixed bytes of bytes [begin, end) and the data, and where that begins.
static std::pair<std::string, uint64_t> readHeader(const InputFile &file, uint64_t begin, uint64_t end,
                                                   const std::string &path) {
  unsigned char start[12] = {};
  if (end - begin < 12)
    throw DataError(text(path, ": not a .npy file: ", end - begin, " bytes are too short for a header"));
  file.readAt(begin, start, sizeof start);
  if (std::memcmp(start, "\x93NUMPY", 6) != 0)
    throw DataError(text(path, ": not a .npy file: it does not begin with \\x93NUMPY"));
  int major = start[6];
  if (major < 1 || major > 3)
    throw DataError(text(path, ": .npy format version ", major, " is not known, 1 to 3 are"));
  uint64_t length = start[8] | start[9] << 8, fixed = 10;
  if (major > 1) {
    length |= static_cast<uint64_t>(start[10]) << 16 | static_cast<uint64_t>(start[11]) << 24;
    fixed = 12;
  }
  // NumPy itself refuses headers above 10,000 characters.
  if (length > 65536 || fixed + length > end - begin)
    throw DataError(
        text(path, ": bad .npy header: its length ", length, " is above 65536 or the file's ", end - begin, " bytes"));
  std::string header(length, '\0');
  file.readAt(begin + fixed, header.data(), length);
  return {header, begin + fixed + length};
}

NpyFile::NpyFile(const std::string &path) : file(path), name(path), end(file.size()) {
  std::string header;
  std::tie(header, dataOffset) = readHeader(file, begin, end, name);
  parseHeader(header);
}

NpyFile::NpyFile(InputFile from, uint64_t begin, uint64_t end, const std::string &name)
    : file(std::move(from)), name(name), begin(begin), end(end) {
  std::string header;
  std::tie(header, dataOffset) = readHeader(file, begin, end, name);
  parseHeader(header);
}

NpyFile::NpyFile(InputFile from, uint64_t begin, DataType type, const std::vector<int64_t> &shape,
                 const std::string &name, bool booleans)
    : file(std::move(from)), name(name), begin(begin), dataType(type), booleans(booleans), dims(shape),
      dataOffset(begin), oneSample(byteWidth(type)) {
  for (size_t i = 1; i < dims.size(); ++i)
    oneSample *= static_cast<size_t>(dims[i]);
}

const char *NpyFile::elementName() const { return booleans ? "bool" : typeName(dataType); }

bool isNpy(const InputFile &file) {
  char start[6] = {};
  if (file.size() < sizeof start)
    return false;
  file.readAt(0, start, sizeof start);
  return std::memcmp(start, "\x93NUMPY", sizeof start) == 0;
}

NpyIntegers readNpyIntegers(const InputFile &file) {
  NpyIntegers found;
  std::string words;
  std::tie(words, found.begin) = readHeader(file, 0, file.size(), file.path());
  const Header header = parseDictionary(words, file.path());
  const std::string &descr = header.descr; // '<u2'
  const bool single = descr.size() == 3 && descr[2] == '1';
  const auto isOneOf = [](const char *characters, char c) {
    return std::string(characters).find(c) != std::string::npos;
  };
  if (descr.size() != 3 || !isOneOf("ui", descr[1]) || !isOneOf("1248", descr[2]) ||
      (descr[0] != '<' && !(descr[0] == '|' && single)))
    throw DataError(text(file.path(), ": element type '", descr, "' is no whole number: save it as uint16 ('<u2'), ",
                         "uint32 ('<u4') or int64 ('<i8')"));
  found.width = descr[2] - '0';
  found.isSigned = descr[1] == 'i';
  if (header.dims.size() != 1)
    throw DataError(text(file.path(), ": an array ", numpyShape(header.dims), ": one of one dimension is needed, ",
                         "array.reshape(-1)"));
  found.count = header.dims[0];
  const uint64_t present = file.size() - found.begin;
  if (int64_t bytes = 0;
      __builtin_mul_overflow(found.count, found.width, &bytes) || static_cast<uint64_t>(bytes) != present)
    throw DataError(text(file.path(), ": shape ", numpyShape(header.dims), " of '", descr, "' does not take the ",
                         present, " bytes that the file holds"));
  return found;
}

void NpyFile::parseHeader(const std::string &header) {
  Header parsed = parseDictionary(header, path());
  if (parsed.descr == "<f4")
    dataType = DataType::F32;
  else if (parsed.descr == "<i8")
    dataType = DataType::I64;
  else if (parsed.descr == "<i4")
    dataType = DataType::I32;
  else if (parsed.descr == "|u1" || parsed.descr == "<u1" || parsed.descr == "|b1")
    dataType = DataType::U8, booleans = parsed.descr == "|b1";
  else
    throw DataError(text(
        path(), ": element type '", parsed.descr,
        "' is not supported: save it as float32 ('<f4'), int64 ('<i8'), int32 ('<i4'), uint8 ('|u1') or bool ('|b1')"));
  if (parsed.fortran && parsed.dims.size() > 1)
    throw DataError(text(path(), ": the array is in Fortran order: save numpy.ascontiguousarray(array)"));

  dims = parsed.dims;
  int64_t sample = static_cast<int64_t>(byteWidth(dataType)), total = 0;
  bool overflow = false;
  for (size_t i = 1; i < dims.size(); ++i)
    overflow |= __builtin_mul_overflow(sample, dims[i], &sample);
  overflow |= __builtin_mul_overflow(sample, dims.empty() ? 1 : dims[0], &total);
  const uint64_t present = end - dataOffset;
  if (overflow)
    throw DataError(text(path(), ": shape ", numpyShape(dims), " is too large, the file holds ", present, " bytes"));
  if (static_cast<uint64_t>(total) != present)
    throw DataError(text(path(), ": shape ", numpyShape(dims), " of ", elementName(), " takes ", total,
                         " bytes, the file holds ", present));
  oneSample = static_cast<size_t>(sample);
}

void NpyFile::read(int64_t first, int64_t count, void *to) const {
  file.readAt(dataOffset + static_cast<uint64_t>(first) * oneSample, to, static_cast<size_t>(count) * oneSample);
}

} // namespace sluice
