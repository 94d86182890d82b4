// SPDX-License-Identifier: Apache-2.0
// Both files are written line by line as text: a trace of a large model has tens of thousands of records.

#include "runtime/common/Trace.h"

#include "runtime/Kernels.h"
#include "runtime/common/OutputFile.h"
#include "runtime/common/Log.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace sluice {

static std::string number(const char *format, double value) {
  char out[48];
  std::snprintf(out, sizeof out, format, value);
  return out;
}

void writeTrace(const std::string &path, const std::vector<OpRecord> &records) {
  OutputFile file(path);
  std::map<std::string, int> rows;
  for (const OpRecord &record : records)
    rows.emplace(record.stream, static_cast<int>(rows.size()));
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (const auto &[stream, row] : rows)
    out += text("{\"ph\":\"M\",\"pid\":1,\"tid\":", row,
                ",\"name\":\"thread_name\",\"args\":{\"name\":", jsonString(stream), "}},\n");
  for (const OpRecord &record : records) {
    out += text("{\"ph\":\"X\",\"pid\":1,\"tid\":", rows[record.stream], ",\"name\":", jsonString(record.node),
                ",\"cat\":", jsonString(record.op), ",\"ts\":", number("%.3f", record.start * 1e6),
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

void writeProfile(const std::string &path, const std::vector<OpRecord> &records, const LinkRates &links, int threads) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> times;
  std::vector<std::pair<std::string, std::string>> order;
  std::map<std::string, std::pair<double, double>> codecs; // bytes and seconds
  for (const OpRecord &record : records) {
    if (record.bytes > 0) {
      const std::string op = record.op, codec = op.substr(op.rfind(' ') + 1);
      if (codec == "fp16" || codec == "zvc" || codec == "zfp") {
        codecs[codec].first += static_cast<double>(record.bytes);
        codecs[codec].second += record.end - record.start;
      }
      continue;
    }
    std::vector<double> &seen = times[{record.node, record.op}];
    if (seen.empty())
      order.push_back({record.node, record.op});
    seen.push_back(record.end - record.start);
  }
  std::string out = text("{\"version\":1,\"device\":", jsonString(deviceName()), ",\"threads\":", threads, ",\"ops\":[");
  for (size_t i = 0; i < order.size(); ++i) {
    std::vector<double> &seen = times[order[i]];
    std::nth_element(seen.begin(), seen.begin() + static_cast<long>(seen.size() / 2), seen.end());
    out += text(i ? ",\n" : "\n", "{\"node\":", jsonString(order[i].first), ",\"op\":", jsonString(order[i].second),
                ",\"seconds\":", number("%.9g", seen[seen.size() / 2]), "}");
  }
  out += text("\n],\"links\":{\"d2h\":", number("%.6g", links.toHost), ",\"h2d\":", number("%.6g", links.toDevice),
              ",\"duplex\":", number("%.6g", links.duplex));
  if (links.contention)
    out += text(",\"contention\":", number("%.6g", *links.contention));
  out += "},\"codecs\":{";
  const char *separator = "";
  for (const auto &[codec, sum] : codecs) {
    out += text(separator, jsonString(codec.c_str()), ":", number("%.6g", sum.first / std::max(1e-9, sum.second)));
    separator = ",";
  }
  out += "}}\n";
  OutputFile file(path);
  file.write(out.data(), out.size());
  file.commit();
}

} // namespace sluice
