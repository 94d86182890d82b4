// SPDX-License-Identifier: Apache-2.0
// Entries are taken as they are parsed: no tree of the whole is built, in which a hostile header would be many times as
// large, and whose parser looks at all former entries at the end of each.

#include "runtime/files/SafetensorsHeader.h"

#include "runtime/Errors.h"

#include <nlohmann/json.hpp>
#include <set>

namespace sluice {

namespace {

using Json = nlohmann::json;

class Reader : public nlohmann::json_sax<Json> {
public:
  Reader(const std::string &path, SafetensorsHeader &header) : path(path), header(header) {}

  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t) override { return other(); } // below 0
  bool number_float(number_float_t, const string_t &) override { return other(); }
  bool binary(binary_t &) override { return other(); }

  bool number_unsigned(number_unsigned_t value) override {
    if (depth != 3 || inMetadata || value > INT64_MAX)
      return other();
    numbers.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(string_t &value) override {
    if (depth != 2 || (!inMetadata && key_ != "dtype"))
      return other();
    (inMetadata ? header.metadata[key_] : tensor.type) = std::move(value);
    return true;
  }

  bool start_object(size_t) override {
    if (depth > 1)
      return other();
    ++depth;
    fields.clear();
    tensor = {};
    return true;
  }

  bool key(string_t &value) override {
    const bool twice = depth == 1 ? header.tensors.count(value) || (value == metadataKey && hasMetadata)
                                  : !fields.insert(value).second;
    if (twice)
      fail(text("bad safetensors header: '", value, "' is there twice"));
    if (depth == 1) {
      name = std::move(value);
      inMetadata = name == metadataKey;
      hasMetadata |= inMetadata;
      return true;
    }
    key_ = std::move(value);
    return inMetadata || key_ == "dtype" || key_ == "shape" || key_ == "data_offsets" || other();
  }

  bool end_object() override {
    if (--depth != 1 || inMetadata)
      return true;
    if (fields.size() != 3)
      return other(2);
    if (header.tensors.size() >= mostSafetensors)
      fail(text("bad safetensors header: more than ", mostSafetensors, " tensors"));
    header.tensors.emplace(std::move(name), std::move(tensor));
    return true;
  }

  bool start_array(size_t) override {
    if (depth != 2 || inMetadata || (key_ != "shape" && key_ != "data_offsets"))
      return other();
    ++depth;
    numbers.clear();
    return true;
  }

  bool end_array() override {
    --depth;
    if (key_ == "shape") {
      tensor.dims = numbers;
      return true;
    }
    if (numbers.size() != 2 || numbers[0] > numbers[1])
      return other();
    tensor.begin = numbers[0], tensor.end = numbers[1];
    return true;
  }

  bool parse_error(size_t, const std::string &, const nlohmann::detail::exception &error) override {
    fail(text("bad safetensors header: ", error.what()));
  }

private:
  [[noreturn]] void fail(const std::string &what) const { throw DataError(text(path, ": ", what)); }

  /// Anything that does not belong where it stands.
  [[noreturn]] bool other() const { other(depth); }
  [[noreturn]] bool other(int at) const {
    if (at == 0)
      fail("bad safetensors header: not a JSON object");
    if (at == 1)
      fail(text("tensor '", name, "': not a JSON object"));
    if (inMetadata)
      fail(text("tensor '", name, "': '", key_, "' is not a string"));
    fail(text("tensor '", name, "': expected exactly dtype, shape and data_offsets [begin, end]"));
  }

  static constexpr char metadataKey[] = "__metadata__";
  const std::string &path;
  SafetensorsHeader &header;
  int depth = 0; ///< 1: in the header's object, 2: in an entry, 3: in one of its arrays
  bool inMetadata = false, hasMetadata = false;
  std::string name, key_; ///< of the entry, in it
  SafetensorsHeader::Tensor tensor = {};
  std::vector<int64_t> numbers;
  std::set<std::string> fields;
};

} // namespace

SafetensorsHeader readSafetensorsHeader(const std::string &text, const std::string &path) {
  SafetensorsHeader header;
  Reader reader(path, header);
  Json::sax_parse(text, &reader);
  return header;
}

} // namespace sluice
