// SPDX-License-Identifier: Apache-2.0
// Both files are written line by line as text: a trace of a large model has tens of thousands of records.

#include "runtime/program/Trace.h"

#include "runtime/CodecTable.h"
#include "runtime/Kernels.h"
#include "runtime/files/OutputFile.h"
#include "runtime/program/Log.h"
#include "runtime/program/OpTimes.h"

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

/// What packed or unpacked, and what it moved in how long.
struct CodecUse {
  double bytes = 0, seconds = 0;
  bool copies = true;
};

/// Where a codec packed in device memory and in copies, the rate is that in device memory: copies may wait for the
/// link. Those to storage do not count, because the disk is their limit.
std::map<std::string, CodecUse> codecsIn(const std::vector<OpRecord> &records) {
  std::map<std::string, CodecUse> codecs;
  for (const OpRecord &record : records) {
    if (record.bytes > 0 && record.node.codec && record.stream != StreamId::Storage) {
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

std::string entryOf(const OpTimes &op) {
  std::string zeros;
  for (double share : op.zeros)
    zeros += (zeros.empty() ? ",\"zeros\":[" : ",") + number("%.6g", share);
  return text("{\"node\":", jsonString(op.node.c_str()), ",\"op\":", jsonString(op.op.c_str()),
              ",\"seconds\":", number("%.9g", op.seconds), ",\"calls\":", op.calls, zeros, zeros.empty() ? "}" : "]}");
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
  std::string out =
      text("{\"version\":1,\"device\":", jsonString(deviceName()), ",\"threads\":", threads, ",\"ops\":[");
  const char *separator = "\n";
  for (const OpTimes &op : timesOfOps(records, recorded)) {
    out += separator + entryOf(op);
    separator = ",\n";
  }
  out += text("\n],\"links\":{\"d2h\":", number("%.6g", links.toHost), ",\"h2d\":", number("%.6g", links.toDevice),
              ",\"duplex\":", number("%.6g", links.duplex));
  if (links.contention)
    out += text(",\"contention\":", number("%.6g", *links.contention));
  if (storage)
    out += text(",\"storage\":{\"d2h\":", number("%.6g", storage->write), ",\"h2d\":", number("%.6g", storage->read),
                ",\"latency_seconds\":", number("%.6g", storage->latency), "}");
  out += "}";
  if (links.packingContention) // the codec stream is a thread like those of copies
    for (const char *key : {"codec_contention", "packing_contention"})
      out += text(",\"", key, "\":", number("%.6g", *links.packingContention));
  out += ",\"codecs\":{";
  separator = "";
  std::map<std::string, double> rates; // of what the program used as it went there
  for (const auto &[codec, rate] : links.codecs)
    rates[codecName(codec)] = rate;
  for (const auto &[codec, use] : codecsIn(records))
    rates[codec] = use.bytes / std::max(1e-9, use.seconds);
  for (const auto &[codec, rate] : rates) {
    out += text(separator, jsonString(codec.c_str()), ":", number("%.6g", rate));
    separator = ",";
  }
  out += "}" + enginesText(engines) + errorsText(errors) + "}\n";
  OutputFile file(path);
  file.write(out.data(), out.size());
  file.commit();
}

} // namespace sluice
