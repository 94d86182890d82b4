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
#include <set>

namespace sluice {

namespace {

constexpr size_t headerBytes = 256;
constexpr int64_t mostColumns = 1 << 14; ///< of a table

using Array = PredictedSamples::Array;

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
  Npy(const std::string &path, const PredictedSamples &samples) : file(path), row(perSample(samples.outputs[0].shape)) {
    const std::string header = npyHeader(samples.names.size(), samples.outputs[0].shape, "<f4");
    file.write(header.data(), header.size());
  }
  void add(const std::vector<std::vector<float>> &values, int64_t samples) override {
    file.write(values[0].data(), static_cast<size_t>(samples * row) * sizeof(float));
  }
  void commit() override { file.commit(); }

private:
  OutputFile file;
  const int64_t row;
};

std::string jsonList(const std::vector<std::string> &words) {
  std::string list;
  for (const std::string &word : words)
    list += (list.empty() ? "" : ", ") + jsonString(word);
  return "[" + list + "]";
}

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

/// One output is called "output", several by their names; classes likewise.
class Npz : public Predictions {
public:
  Npz(const std::string &path, const PredictedSamples &samples) : file(path), zip(file) {
    const bool alone = samples.outputs.size() == 1;
    std::set<std::string> taken = {"sample"};
    const auto memberOf = [&](std::string name) {
      while (!taken.insert(name).second)
        name += "_";
      return name;
    };
    std::vector<std::string> members;
    for (const Array &output : samples.outputs)
      members.push_back(memberOf(alone ? "output" : output.name));
    for (const Array &output : samples.outputs)
      if (!output.classes.empty())
        addStrings(memberOf(alone ? "classes" : output.name + "_classes") + ".npy", output.classes);
    addStrings("sample.npy", samples.names);
    for (size_t i = 0; i < members.size(); ++i) {
      const Array &output = samples.outputs[i];
      const std::string header = npyHeader(samples.names.size(), output.shape, "<f4");
      const int64_t row = perSample(output.shape);
      arrays.push_back(
          {row, zip.begin(members[i] + ".npy",
                          header.size() + samples.names.size() * static_cast<size_t>(row) * sizeof(float))});
      zip.write(arrays.back().second, header.data(), header.size());
    }
  }
  void add(const std::vector<std::vector<float>> &values, int64_t samples) override {
    for (size_t i = 0; i < arrays.size(); ++i)
      zip.write(arrays[i].second, values[i].data(), static_cast<size_t>(samples * arrays[i].first) * sizeof(float));
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
    const size_t array = zip.begin(member, header.size() + list.size() * longest * 4);
    zip.write(array, header.data(), header.size());
    for (const std::string &one : list) {
      std::u32string characters = charactersOf(one);
      characters.resize(longest);
      zip.write(array, characters.data(), longest * 4);
    }
  }

  OutputFile file;
  ZipWriter zip;
  std::vector<std::pair<int64_t, size_t>> arrays; ///< numbers of a sample, and the member, of each output
};

/// Formats that have a row for each sample.
class Rows : public Predictions {
public:
  Rows(const std::string &path, const PredictedSamples &samples) : samples(samples), file(path) {}

  void add(const std::vector<std::vector<float>> &values, int64_t count) override {
    std::string out;
    std::vector<const float *> row;
    for (int64_t i = 0; i < count; ++i) {
      row.clear();
      for (size_t k = 0; k < values.size(); ++k)
        row.push_back(values[k].data() + i * columns(k));
      out += rowOf(next++, row);
    }
    file.write(out.data(), out.size());
  }

protected:
  /// Of a sample, from the numbers of each output.
  virtual std::string rowOf(size_t sample, const std::vector<const float *> &values) const = 0;

  int64_t columns(size_t output) const { return perSample(samples.outputs[output].shape); }
  bool isAlone() const { return samples.outputs.size() == 1; }
  void put(const std::string &out) { file.write(out.data(), out.size()); }
  /// Of an output that has scores, the class by its name, or its number where it has none.
  std::string answerOf(size_t output, const float *values) const {
    return nameOf(output, static_cast<size_t>(std::max_element(values, values + columns(output)) - values));
  }
  std::string nameOf(size_t output, size_t number) const { return className(samples.outputs[output].classes, number); }

  const PredictedSamples &samples;
  OutputFile file;
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
    for (size_t k = 0; k < samples.outputs.size(); ++k)
      if (samples.outputs[k].scores)
        header += "," + csvField(k == 0 ? "answer" : samples.outputs[k].name + "_answer");
    for (size_t k = 0; k < samples.outputs.size(); ++k)
      for (int64_t i = 0; i < columns(k); ++i) {
        const std::string number = samples.outputs[k].scores ? nameOf(k, static_cast<size_t>(i)) : std::to_string(i);
        header += "," + csvField(k == 0 && samples.outputs[0].scores ? number
                                 : isAlone()                         ? text("output_", i)
                                                                     : text(samples.outputs[k].name, "_", number));
      }
    put(header + "\n");
  }
  void commit() override { file.commit(); }

private:
  std::string rowOf(size_t sample, const std::vector<const float *> &values) const override {
    std::string row = csvField(samples.names[sample]);
    for (size_t k = 0; k < values.size(); ++k)
      if (samples.outputs[k].scores)
        row += "," + csvField(answerOf(k, values[k]));
    for (size_t k = 0; k < values.size(); ++k)
      for (int64_t i = 0; i < columns(k); ++i)
        row += "," + numberText(values[k][i]);
    return row + "\n";
  }
};

constexpr char jsonMark[] = "{\"written_by\": \"sluice --predict\", ";

/// Numbers of a sample lie flat, in the order of the shape that is given once: of one output in "output", of several
/// in "outputs" by their names.
class JsonRows : public Rows {
public:
  JsonRows(const std::string &path, const PredictedSamples &samples) : Rows(path, samples) {
    std::string header = jsonMark;
    header += each("shape", [&](size_t k) {
      std::string shape;
      for (int i = 1; i < samples.outputs[k].shape.rank; ++i)
        shape += text(i > 1 ? ", " : "", samples.outputs[k].shape[i]);
      return shape;
    });
    header += ", \"classes\": ";
    std::string ofOutputs;
    for (const Array &output : samples.outputs)
      if (!output.classes.empty())
        ofOutputs += (ofOutputs.empty() ? "" : ", ") + jsonString(output.name) + ": " + jsonList(output.classes);
    put(header + (isAlone() ? jsonList(samples.outputs[0].classes) : "{" + ofOutputs + "}") + ", \"predictions\": [");
  }
  void commit() override {
    put("\n]}\n");
    file.commit();
  }

private:
  /// "key": [list of the only output], or "keys": {"name": [its list], ...}.
  template <typename List> std::string each(const std::string &key, List list) const {
    if (isAlone())
      return "\"" + key + "\": [" + list(0) + "]";
    std::string out = "\"" + key + "s\": {";
    for (size_t k = 0; k < samples.outputs.size(); ++k)
      out += (k ? ", " : "") + jsonString(samples.outputs[k].name) + ": [" + list(k) + "]";
    return out + "}";
  }

  std::string rowOf(size_t sample, const std::vector<const float *> &values) const override {
    std::string row = text(sample ? ",\n" : "\n", "{\"sample\": ", jsonString(samples.names[sample]));
    if (samples.outputs[0].scores)
      row += ", \"answer\": " + jsonString(answerOf(0, values[0]));
    std::string answers;
    for (size_t k = 0; k < values.size() && !isAlone(); ++k)
      if (samples.outputs[k].scores)
        answers += text(answers.empty() ? "" : ", ", jsonString(samples.outputs[k].name), ": ",
                        jsonString(answerOf(k, values[k])));
    row += answers.empty() ? "" : ", \"answers\": {" + answers + "}";
    return row + ", " +
           each("output",
                [&](size_t k) {
                  std::string numbers;
                  for (int64_t i = 0; i < columns(k); ++i)
                    numbers += (i ? ", " : "") + (std::isfinite(values[k][i]) ? numberText(values[k][i]) : "null");
                  return numbers;
                }) +
           "}";
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
const Ending ofFolders = {"/", openMasks, maskPngMark, false};

const Ending &endingOf(const std::string &path) {
  if (isMaskFolder(path))
    return ofFolders;
  for (const Ending &ending : endings)
    if (endsWith(path, ending.word))
      return ending;
  throw UsageError(
      text("--output ", path,
           ": the name says how it is written: .npy, .npz, .csv or .json, or FOLDER/ for masks of classes"));
}

} // namespace

void checkPredictions(const std::string &path, const std::vector<Array> &outputs) {
  if (isMaskFolder(path))
    return checkMasks(path, outputs);
  const Ending &ending = endingOf(path);
  std::string names;
  int64_t columns = 0;
  for (const Array &output : outputs) {
    names += text(names.empty() ? "'" : ", '", output.name, "'");
    columns += perSample(output.shape);
  }
  if (ending.open == open<Npy> && outputs.size() > 1)
    throw UsageError(text("--output ", path, ": .npy holds one array, the program predicts ", outputs.size(), " (",
                          names, "): write .npz, or compile with --output=NAME for one of them"));
  if (ending.table && columns > mostColumns)
    throw UsageError(text("--output ", path, ": a sample has ", columns, " numbers, a table has ", mostColumns,
                          " at most: write .npy or .npz"));
}

std::unique_ptr<Predictions> openPredictions(const std::string &path, const PredictedSamples &samples) {
  return endingOf(path).open(path, samples);
}

bool namesSamples(const std::string &path) { return endingOf(path).open != open<Npy>; }

std::string predictionsMark(const std::string &path) { return endingOf(path).mark(); }

} // namespace sluice
