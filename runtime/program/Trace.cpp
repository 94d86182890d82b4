// SPDX-License-Identifier: Apache-2.0
// Both files are written line by line as text: a trace of a large model has tens of thousands of records.

#include "runtime/program/Trace.h"

#include "runtime/CodecTable.h"
#include "runtime/Kernels.h"
#include "runtime/files/OutputFile.h"
#include "runtime/program/Log.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

namespace sluice {

static std::string number(const char *format, double value) {
  char out[48];
  std::snprintf(out, sizeof out, format, value);
  return out;
}

void writeTrace(const std::string &path, const std::vector<OpRecord> &records) {
  OutputFile file(path);
  std::set<StreamId> used;
  for (const OpRecord &record : records)
    used.insert(record.stream);
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (StreamId stream : used)
    out += text("{\"ph\":\"M\",\"pid\":1,\"tid\":", indexOf(stream),
                ",\"name\":\"thread_name\",\"args\":{\"name\":", jsonString(factsOf(stream).label), "}},\n");
  for (const OpRecord &record : records) {
    out += text("{\"ph\":\"X\",\"pid\":1,\"tid\":", indexOf(record.stream),
                ",\"name\":", jsonString(nameOf(record.node).c_str()), ",\"cat\":", jsonString(record.op),
                ",\"ts\":", number("%.3f", record.start * 1e6),
                ",\"dur\":", number("%.3f", (record.end - record.start) * 1e6),
                ",\"args\":{\"op\":", jsonString(record.op));
    if (record.bytes > 0)
      out += text(",\"bytes\":", record.bytes);
    out += "}},\n";
    if (out.size() > (size_t{1} << 20)) {
      file.write(out.data(), out.size());
      out.clear();
    }
  }
  out += "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"sluice\"}}\n]}\n";
  file.write(out.data(), out.size());
  file.commit();
}

namespace {

/// All calls that have one name.
struct NamedCalls {
  std::string node, op;
  std::vector<double> seconds; ///< of every call, in order
  std::vector<double> zeros;   ///< of all tensors that the calls wrote, in order

  size_t perStep(size_t steps) const { return std::max<size_t>(1, seconds.size() / steps); }
  /// Of every step, which has as many calls as any other.
  std::vector<double> sums(size_t steps) const {
    std::vector<double> result(steps);
    for (size_t i = 0; i < seconds.size(); ++i)
      result[i * steps / seconds.size()] += seconds[i];
    return result;
  }
  /// Of each tensor that a step writes, the mean of the steps.
  std::vector<double> zerosPerStep(size_t steps) const {
    std::vector<double> result(zeros.size() / steps);
    for (size_t i = 0; i < result.size() * steps; ++i)
      result[i % result.size()] += zeros[i] / static_cast<double>(steps);
    return result;
  }
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// What medians of single ops leave out, because it disturbs now this one and now that, is part of every step: by so
/// much they are too small.
double stretch(const std::vector<NamedCalls> &ops, size_t steps) {
  std::vector<double> totals(steps);
  double medians = 0;
  for (const NamedCalls &op : ops) {
    const std::vector<double> sums = op.sums(steps);
    for (size_t i = 0; i < steps; ++i)
      totals[i] += sums[i];
    medians += median(sums);
  }
  return medians > 0 ? median(totals) / medians : 1;
}

/// What packed or unpacked, and what it moved in how long.
struct CodecUse {
  double bytes = 0, seconds = 0;
  bool copies = true;
};

/// Where a codec packed in device memory and in copies, the rate is that in device memory: copies may wait for the
/// link.
std::map<std::string, CodecUse> codecsIn(const std::vector<OpRecord> &records) {
  std::map<std::string, CodecUse> codecs;
  for (const OpRecord &record : records) {
    if (record.bytes > 0 && record.node.codec) {
      Codec plain{record.node.codec.kind}; // of any rate
      plain.mask = record.node.codec.mask;
      const bool copies = record.node.role == OpRole::Offload || record.node.role == OpRole::Prefetch;
      CodecUse &use = codecs[codecName(plain)];
      if (use.copies && !copies)
        use = {0, 0, false};
      if (use.copies == copies) {
        use.bytes += static_cast<double>(record.bytes);
        use.seconds += record.end - record.start;
      }
    }
  }
  return codecs;
}

std::vector<NamedCalls> opsIn(const std::vector<OpRecord> &records) {
  std::map<std::pair<std::string, std::string>, size_t> places;
  std::vector<NamedCalls> ops;
  for (const OpRecord &record : records) {
    if (record.bytes > 0)
      continue;
    const auto [place, fresh] = places.try_emplace({nameOf(record.node), record.op}, ops.size());
    if (fresh)
      ops.push_back({nameOf(record.node), record.op, {}, {}});
    NamedCalls &calls = ops[place->second];
    calls.seconds.push_back(record.end - record.start);
    calls.zeros.insert(calls.zeros.end(), record.zeros.begin(), record.zeros.end());
  }
  return ops;
}

std::string entryOf(const NamedCalls &op, double factor, size_t steps) {
  std::string zeros;
  for (double share : op.zerosPerStep(steps))
    zeros += (zeros.empty() ? ",\"zeros\":[" : ",") + number("%.6g", share);
  return text("{\"node\":", jsonString(op.node.c_str()), ",\"op\":", jsonString(op.op.c_str()),
              ",\"seconds\":", number("%.9g", factor * median(op.sums(steps))), ",\"calls\":", op.perStep(steps), zeros,
              zeros.empty() ? "}" : "]}");
}

} // namespace

static std::string enginesText(const std::vector<EngineTime> &engines) {
  std::string out;
  for (const EngineTime &e : engines)
    out +=
        text(out.empty() ? ",\"engines\":[\n" : ",\n", "{\"convolution\":", jsonString(e.convolution.c_str()),
             ",\"engine\":", jsonString(e.engine.c_str()), ",\"parts\":", e.parts,
             ",\"seconds\":", number("%.9g", e.seconds), ",\"ranked_seconds\":", number("%.9g", e.rankedSeconds), "}");
  return out.empty() ? out : out + "\n]";
}

/// Profiles have none above it; no plan is for such gradients.
constexpr double largestError = 1e6;

static std::string errorsText(const std::vector<TensorError> &errors) {
  std::string out;
  for (const TensorError &e : errors)
    out += text(out.empty() ? ",\"errors\":[\n" : ",\n", "{\"tensor\":", jsonString(e.tensor.c_str()),
                ",\"codec\":", jsonString(codecName(e.codec).c_str()),
                e.error <= largestError ? ",\"error\":" + number("%.6g", e.error) : ",\"refused\":true", "}");
  return out.empty() ? out : out + "\n]";
}

void writeProfile(const std::string &path, const std::vector<OpRecord> &records, int64_t recorded,
                  const LinkRates &links, int threads, const std::vector<EngineTime> &engines,
                  const std::vector<TensorError> &errors, const std::optional<StorageRates> &storage) {
  const auto steps = static_cast<size_t>(std::max<int64_t>(1, recorded));
  const std::vector<NamedCalls> ops = opsIn(records);
  const double factor = stretch(ops, steps);
  std::string out =
      text("{\"version\":1,\"device\":", jsonString(deviceName()), ",\"threads\":", threads, ",\"ops\":[");
  const char *separator = "\n";
  for (const NamedCalls &op : ops) {
    out += separator + entryOf(op, factor, steps);
    separator = ",\n";
  }
  out += text("\n],\"links\":{\"d2h\":", number("%.6g", links.toHost), ",\"h2d\":", number("%.6g", links.toDevice),
              ",\"duplex\":", number("%.6g", links.duplex));
  if (links.contention)
    out += text(",\"contention\":", number("%.6g", *links.contention));
  if (storage)
    out += text(",\"storage\":{\"d2h\":", number("%.6g", storage->write), ",\"h2d\":", number("%.6g", storage->read),
                ",\"latency_seconds\":", number("%.6g", storage->latency), "}");
  out += "},\"codecs\":{";
  separator = "";
  for (const auto &[codec, use] : codecsIn(records)) {
    out += text(separator, jsonString(codec.c_str()), ":", number("%.6g", use.bytes / std::max(1e-9, use.seconds)));
    separator = ",";
  }
  out += "}" + enginesText(engines) + errorsText(errors) + "}\n";
  OutputFile file(path);
  file.write(out.data(), out.size());
  file.commit();
}

} // namespace sluice
