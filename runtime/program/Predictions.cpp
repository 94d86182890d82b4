// SPDX-License-Identifier: Apache-2.0
// Headers of .npy always take as many bytes, so that the mark in one is one string; any shape fits. Strings are NumPy's
// '<U': as many characters of four bytes for each as the longest has.

#include "runtime/program/Predictions.h"

#include "runtime/Errors.h"
#include "runtime/files/OutputFile.h"
#include "runtime/files/ZipWriter.h"
#include "runtime/program/Log.h"
#include "runtime/program/Metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace sluice {

namespace {

constexpr size_t headerBytes = 256;
constexpr int64_t mostColumns = 1 << 14; ///< of a table

int64_t perSample(const Shape &output) { return output.elements() / std::max<int64_t>(1, output[0]); }

/// NumPy's own headers have their keys in another order.
std::string npyMark() {
  const size_t dictionary = headerBytes - 10; // after magic, version and this length
  std::string mark("\x93NUMPY\x01\x00", 8);
  mark += static_cast<char>(dictionary & 0xff);
  mark += static_cast<char>(dictionary >> 8);
  return mark + "{'shape': (";
}

std::string npyHeader(size_t samples, const Shape &batch, const std::string &type) {
  std::string header = npyMark() + text(samples, ",");
  for (int i = 1; i < batch.rank; ++i)
    header += text(i > 1 ? ", " : " ", batch[i]);
  header += "), 'descr': '" + type + "', 'fortran_order': False}";
  header.resize(headerBytes - 1, ' ');
  return header + "\n";
}

class Npy : public Predictions {
public:
  Npy(const std::string &path, const PredictedSamples &samples) : file(path), row(perSample(samples.output)) {
    const std::string header = npyHeader(samples.names.size(), samples.output, "<f4");
    file.write(header.data(), header.size());
  }
  void add(const float *values, int64_t samples) override {
    file.write(values, static_cast<size_t>(samples * row) * sizeof(float));
  }
  void commit() override { file.commit(); }

private:
  OutputFile file;
  const int64_t row;
};

/// Code points of UTF-8; what is none becomes U+FFFD.
std::u32string charactersOf(const std::string &bytes) {
  std::u32string out;
  for (size_t at = 0; at < bytes.size();) {
    const auto first = static_cast<unsigned char>(bytes[at++]);
    const int more = first < 0x80 ? 0 : first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : -1;
    char32_t point = more < 0 ? 0xfffd : more == 0 ? first : first & (0x3f >> more);
    for (int i = 0; i < more; ++i) {
      if (at >= bytes.size() || (static_cast<unsigned char>(bytes[at]) & 0xc0) != 0x80) {
        point = 0xfffd;
        break;
      }
      point = point << 6 | (static_cast<unsigned char>(bytes[at++]) & 0x3f);
    }
    out += point > 0x10ffff ? char32_t{0xfffd} : point;
  }
  return out;
}

class Npz : public Predictions {
public:
  Npz(const std::string &path, const PredictedSamples &samples)
      : file(path), zip(file), row(perSample(samples.output)) {
    if (!samples.classes.empty())
      addStrings("classes.npy", samples.classes);
    addStrings("sample.npy", samples.names);
    const std::string header = npyHeader(samples.names.size(), samples.output, "<f4");
    zip.begin("output.npy", header.size() + samples.names.size() * static_cast<size_t>(row) * sizeof(float));
    zip.write(header.data(), header.size());
  }
  void add(const float *values, int64_t samples) override {
    zip.write(values, static_cast<size_t>(samples * row) * sizeof(float));
  }
  void commit() override {
    zip.finish();
    file.commit();
  }

private:
  void addStrings(const std::string &member, const std::vector<std::string> &list) {
    size_t longest = 1;
    for (const std::string &one : list)
      longest = std::max(longest, charactersOf(one).size());
    const std::string header = npyHeader(list.size(), {1}, text("<U", longest));
    zip.begin(member, header.size() + list.size() * longest * 4);
    zip.write(header.data(), header.size());
    for (const std::string &one : list) {
      std::u32string characters = charactersOf(one);
      characters.resize(longest);
      zip.write(characters.data(), longest * 4);
    }
  }

  OutputFile file;
  ZipWriter zip;
  const int64_t row;
};

/// Formats that have a row for each sample.
class Rows : public Predictions {
public:
  Rows(const std::string &path, const PredictedSamples &samples)
      : samples(samples), file(path), columns(perSample(samples.output)) {}

  void add(const float *values, int64_t count) override {
    std::string out;
    for (int64_t i = 0; i < count; ++i, values += columns)
      out += rowOf(next++, values);
    file.write(out.data(), out.size());
  }

protected:
  virtual std::string rowOf(size_t sample, const float *values) const = 0;

  void put(const std::string &out) { file.write(out.data(), out.size()); }
  std::string answerOf(const float *values) const {
    return className(samples.classes, static_cast<size_t>(std::max_element(values, values + columns) - values));
  }

  const PredictedSamples &samples;
  OutputFile file;
  const int64_t columns;
  size_t next = 0;
};

std::string numberText(float value) {
  char digits[64];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

/// RFC 4180: quotes around what needs them.
std::string csvField(const std::string &value) {
  if (value.find_first_of(",\"\r\n") == std::string::npos)
    return value;
  std::string out = "\"";
  for (const char c : value)
    out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

constexpr char csvMark[] = "sample,";

class Csv : public Rows {
public:
  Csv(const std::string &path, const PredictedSamples &samples) : Rows(path, samples) {
    std::string header = "sample";
    if (samples.scores)
      header += ",answer";
    for (int64_t i = 0; i < columns; ++i)
      header +=
          "," + csvField(samples.scores ? className(samples.classes, static_cast<size_t>(i)) : text("output_", i));
    put(header + "\n");
  }
  void commit() override { file.commit(); }

private:
  std::string rowOf(size_t sample, const float *values) const override {
    std::string row = csvField(samples.names[sample]);
    if (samples.scores)
      row += "," + csvField(answerOf(values));
    for (int64_t i = 0; i < columns; ++i)
      row += "," + numberText(values[i]);
    return row + "\n";
  }
};

constexpr char jsonMark[] = "{\"written_by\": \"sluice --predict\", ";

/// Numbers of a sample lie flat, in the order of the shape that is given once.
class JsonRows : public Rows {
public:
  JsonRows(const std::string &path, const PredictedSamples &samples) : Rows(path, samples) {
    std::string header = std::string(jsonMark) + "\"shape\": [";
    for (int i = 1; i < samples.output.rank; ++i)
      header += text(i > 1 ? ", " : "", samples.output[i]);
    header += "], \"classes\": [";
    for (size_t i = 0; i < samples.classes.size(); ++i)
      header += (i ? ", " : "") + jsonString(samples.classes[i]);
    put(header + "], \"predictions\": [");
  }
  void commit() override {
    put("\n]}\n");
    file.commit();
  }

private:
  std::string rowOf(size_t sample, const float *values) const override {
    std::string row = text(sample ? ",\n" : "\n", "{\"sample\": ", jsonString(samples.names[sample]));
    if (samples.scores)
      row += ", \"answer\": " + jsonString(answerOf(values));
    row += ", \"output\": [";
    for (int64_t i = 0; i < columns; ++i)
      row += (i ? ", " : "") + (std::isfinite(values[i]) ? numberText(values[i]) : "null");
    return row + "]}";
  }
};

template <typename Format> std::unique_ptr<Predictions> open(const std::string &path, const PredictedSamples &samples) {
  return std::make_unique<Format>(path, samples);
}

struct Ending {
  const char *word;
  std::unique_ptr<Predictions> (*open)(const std::string &path, const PredictedSamples &samples);
  std::string (*mark)();
  bool table;
};

const Ending endings[] = {{".npy", open<Npy>, npyMark, false},
                          {".npz", open<Npz>, zipMark, false},
                          {".csv", open<Csv>, [] { return std::string(csvMark); }, true},
                          {".json", open<JsonRows>, [] { return std::string(jsonMark); }, true}};

const Ending &endingOf(const std::string &path) {
  for (const Ending &ending : endings)
    if (endsWith(path, ending.word))
      return ending;
  throw UsageError(text("--output ", path, ": the name says how it is written: .npy, .npz, .csv or .json"));
}

} // namespace

void checkPredictions(const std::string &path, const Shape &output) {
  if (endingOf(path).table && perSample(output) > mostColumns)
    throw UsageError(text("--output ", path, ": a sample has ", perSample(output), " numbers, a table has ",
                          mostColumns, " at most: write .npy or .npz"));
}

std::unique_ptr<Predictions> openPredictions(const std::string &path, const PredictedSamples &samples) {
  return endingOf(path).open(path, samples);
}

std::string predictionsMark(const std::string &path) { return endingOf(path).mark(); }

} // namespace sluice
