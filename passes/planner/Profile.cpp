// SPDX-License-Identifier: Apache-2.0
// Reads device profiles and estimates op times from them.
#include "passes/planner/Profile.h"

#include "passes/planner/Files.h"
#include "passes/planner/InterconnectFile.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace sluice::planner {

using nlohmann::json;

const MeasuredOp *Profile::measured(const std::string &node, const std::string &op) const {
  auto found = ops.find({node, op});
  return found == ops.end() ? nullptr : &found->second;
}

/// Much of the time goes into the weights where pixels are few; where they are many, their number hardly matters.
static double pixelSize(double pixels) {
  return 16 * std::sqrt(pixels / (pixels + 256)) * std::sqrt(std::sqrt(pixels));
}

std::vector<double> convSize(double in, double out, double side, double pixels, double area, double stride) {
  return {in, out, std::sqrt(side), pixelSize(pixels), area, stride};
}

std::vector<double> depthwiseSize(double channels, double side, double pixels, double area, double stride) {
  return {std::sqrt(channels), std::sqrt(side), pixelSize(pixels), area, stride};
}

std::vector<double> productSize(double rows, double inner, double columns) {
  return {rows, std::sqrt(inner), std::sqrt(columns)};
}

std::vector<double> attentionSize(double rows, double keys, double depth) { return {rows, keys, std::sqrt(depth)}; }

double surroundings(double bytes) { return std::pow(std::clamp(bytes, 1.0, 1024.0 * (1 << 20)), 0.25); }

/// The mean of logarithms.
double rateNear(const std::vector<Sample> &samples, const std::vector<double> &size) {
  double sum = 0, weights = 0;
  for (const Sample &sample : samples) {
    double distance = 0.02; // squared; what sizes do not say makes as much of a difference
    for (size_t i = 0; i < size.size(); ++i) {
      const double octaves = std::log2(std::max(1.0, size[i]) / sample.size[i]);
      distance += octaves * octaves;
    }
    const double weight = 1 / (distance * distance);
    sum += weight * std::log(sample.rate);
    weights += weight;
  }
  return std::exp(sum / weights);
}

/// Samples of another list of sizes are those of another version.
std::optional<double> Profile::rateOf(const Work &work) const {
  for (const std::string &kind : {work.sample, work.alike})
    for (const std::string &type : {work.type, std::string("fp32")}) {
      const auto measured = samples.find({kind, type});
      if (measured != samples.end() && !measured->second.empty() && measured->second[0].size.size() == work.size.size())
        return rateNear(measured->second, work.size);
    }
  return std::nullopt;
}

Seconds Profile::estimate(const Work &work) const {
  const bool arithmeticKind = work.kind == OpKind::Conv || work.kind == OpKind::FullyConnected;
  if (const std::optional<double> rate = rateOf(work))
    return std::max(rates.launch, (arithmeticKind ? work.flops : work.bytes) / *rate);
  auto peak = rates.flops.find(work.precision);
  if (peak == rates.flops.end())
    peak = rates.flops.find("fp32");
  const double share = work.kind == OpKind::Conv ? rates.convEfficiency : rates.matmulEfficiency;
  const Seconds arithmetic = peak == rates.flops.end() ? 0 : work.flops / (peak->second * share);
  const Seconds moved =
      rates.memoryBandwidth > 0 ? work.bytes / (rates.memoryBandwidth * rates.bandwidthEfficiency) : 0;
  return std::max(arithmetic, moved) + rates.launch;
}

namespace {

/// What numbers of a profile can mean: beyond these sums and quotients of them leave the range of a double or of 64
/// bits.
struct Range {
  double least, most;
};
constexpr Range seconds{0, 1e6}, bytes{0, 1e15}, rate{1, 1e18}, rateOrNone{0, 1e18}, flops{1, 1e24}, share{1e-6, 1},
    lossPerByte{0, 1}, lossPerSecond{0, 1}, zeroShare{0, 1}, relativeError{0, 1e6}, extent{1, 1e18}, callCount{1, 1e9},
    threadCount{0, 65536}, partCount{1, 1e6};

} // namespace

/// A number in that range; absent: `fallback`.
static double number(const json &object, const std::string &key, double fallback, Range range) {
  return object.contains(key) ? numberOf(object.at(key), key, range.least, range.most) : fallback;
}

/// A list of numbers in that range; absent: none.
static std::vector<double> numbers(const json &object, const std::string &key, Range range) {
  std::vector<double> list;
  if (!object.contains(key))
    return list;
  if (!object.at(key).is_array())
    throw std::runtime_error("'" + key + "' is not an array: " + quoted(object));
  for (const json &one : object.at(key))
    list.push_back(numberOf(one, key, range.least, range.most));
  return list;
}

/// What is absent is empty, so that its figures have their defaults.
static const json &object(const json &parent, const char *key) {
  static const json none = json::object();
  if (!parent.contains(key))
    return none;
  if (!parent.at(key).is_object())
    throw std::runtime_error("'" + std::string(key) + "' is not an object");
  return parent.at(key);
}

static Rates readRates(const json &root) {
  Rates rates;
  const json &from = object(root, "rates");
  for (const auto &[precision, value] : object(from, "flops").items())
    rates.flops[precision] = number(object(from, "flops"), precision, 0, flops);
  rates.memoryBandwidth = number(from, "memory_bandwidth", 0, rateOrNone);
  rates.hostBandwidth = number(from, "host_bandwidth", 0, rateOrNone);
  rates.launch = number(from, "launch_seconds", 0, seconds);
  const json &efficiency = object(from, "efficiency");
  rates.convEfficiency = number(efficiency, "conv", 1, share);
  rates.matmulEfficiency = number(efficiency, "matmul", 1, share);
  rates.bandwidthEfficiency = number(efficiency, "bandwidth", 1, share);
  return rates;
}

/// Measured times, which programs write with --profile-out; the last one of a node and op counts.
static void readOps(const json &root, Profile &profile) {
  if (!root.contains("ops"))
    return;
  if (!root.at("ops").is_array())
    throw std::runtime_error("'ops' is not an array");
  for (const json &op : root.at("ops")) {
    if (!op.is_object() || !op.contains("node") || !op.at("node").is_string() || !op.contains("op") ||
        !op.at("op").is_string() || !op.contains("seconds"))
      throw std::runtime_error("an entry of 'ops' lacks 'node', 'op' or 'seconds': " + quoted(op));
    profile.ops[{op.at("node"), op.at("op")}] = {
        number(op, "seconds", 0, seconds), static_cast<int>(number(op, "calls", 1, callCount)),
        static_cast<Bytes>(number(op, "workspace_bytes", 0, bytes)), numbers(op, "zeros", zeroShare)};
  }
}

/// Kernels that --calibrate measured. All of one kind have as many sizes, so that they can be compared.
static void readSamples(const json &root, Profile &profile) {
  if (!root.contains("samples"))
    return;
  if (!root.at("samples").is_array())
    throw std::runtime_error("'samples' is not an array");
  for (const json &sample : root.at("samples")) {
    const auto isText = [&](const char *key) { return sample.contains(key) && sample.at(key).is_string(); };
    if (!sample.is_object() || !isText("kind") || !sample.contains("size") || !sample.contains("rate"))
      throw std::runtime_error("an entry of 'samples' lacks 'kind', 'size' or 'rate': " + quoted(sample));
    if (sample.contains("type") && !isText("type"))
      throw std::runtime_error("the 'type' of a sample is no text: " + quoted(sample));
    Sample read{numbers(sample, "size", extent), number(sample, "rate", 0, rate)};
    std::vector<Sample> &list = profile.samples[{sample.at("kind"), sample.value("type", "fp32")}];
    if (!list.empty() && list[0].size.size() != read.size.size())
      throw std::runtime_error("a sample has another number of sizes than those before it: " + quoted(sample));
    list.push_back(std::move(read));
  }
}

static void readEngines(const json &root, Profile &profile) {
  if (!root.contains("engines"))
    return;
  if (!root.at("engines").is_array())
    throw std::runtime_error("'engines' is not an array");
  for (const json &engine : root.at("engines")) {
    auto isName = [&](const char *key) {
      return engine.contains(key) && engine.at(key).is_string() &&
             !engine.at(key).get_ref<const std::string &>().empty();
    };
    if (!engine.is_object() || !isName("convolution") || !isName("engine"))
      throw std::runtime_error("an entry of 'engines' lacks 'convolution' or 'engine': " + quoted(engine));
    profile.engines[engine.at("convolution")] = {engine.at("engine"),
                                                 static_cast<int>(number(engine, "parts", 1, partCount))};
  }
}

/// Of tensors under codecs, by --profile-errors of a program; a codec that this compiler does not know is passed over.
static void readErrors(const json &root, Profile &profile) {
  if (!root.contains("errors"))
    return;
  if (!root.at("errors").is_array())
    throw std::runtime_error("'errors' is not an array");
  for (const json &entry : root.at("errors")) {
    const auto isText = [&](const char *key) { return entry.contains(key) && entry.at(key).is_string(); };
    const bool refused = entry.is_object() && entry.contains("refused") && entry.at("refused") == true;
    if (!entry.is_object() || !isText("tensor") || !isText("codec") || !(refused || entry.contains("error")))
      throw std::runtime_error("an entry of 'errors' lacks 'tensor', 'codec' or 'error': " + quoted(entry));
    const double error = refused ? std::numeric_limits<double>::infinity() : number(entry, "error", 0, relativeError);
    std::map<Codec, double> &measured = profile.errors[entry.at("tensor")];
    if (const std::optional<Codec> codec = parseForm(entry.at("codec").get_ref<const std::string &>()))
      measured[*codec] = error;
  }
}

static Link readLink(const json &links) {
  Link link;
  link.d2h = number(links, "d2h", 0, rate);
  link.h2d = number(links, "h2d", link.d2h, rate);
  link.duplex = number(links, "duplex", 0, rateOrNone);
  link.latency = number(links, "latency_seconds", 0, seconds);
  if (links.contains("contention"))
    link.contention = number(links, "contention", 0, lossPerByte);
  return link;
}

static void readLinks(const json &links, Profile &profile) {
  profile.link = readLink(links);
  if (links.contains("ranks"))
    profile.ranks = readInterconnect(object(links, "ranks"));
  for (const ArenaFacts &arena : arenaTable)
    if (arena.isHome && arena.space != Space::Host && links.contains(arena.name))
      if (const Link link = readLink(object(links, arena.name)); link.d2h > 0)
        profile.links[arena.space] = link;
}

static Profile readProfile(const json &root) {
  if (!root.is_object() || !root.contains("version") || root.at("version") != 1)
    throw std::runtime_error("version is " + (root.is_object() ? quoted(root.value("version", json())) : "missing") +
                             ", 1 is supported");
  Profile profile;
  if (root.contains("device") && root.at("device").is_string())
    profile.device = root.at("device");
  if (root.contains("provenance") && root.at("provenance").is_string())
    profile.provenance = root.at("provenance");
  profile.threads = static_cast<int>(number(root, "threads", 0, threadCount));
  profile.memory = static_cast<Bytes>(number(root, "memory_bytes", 0, bytes));
  readLinks(object(root, "links"), profile);
  profile.rates = readRates(root);
  readSamples(root, profile);
  readOps(root, profile);
  readEngines(root, profile);
  readErrors(root, profile);
  for (const auto &[name, value] : object(root, "codecs").items()) {
    const double speed = number(object(root, "codecs"), name, 0, rate);
    if (const std::optional<Codec> codec = parseForm(name)) // else of a program that knows more of them
      profile.codecs[*codec] = speed;
  }
  if (root.contains("codec_contention"))
    profile.codecContention = number(root, "codec_contention", 0, lossPerSecond);
  if (root.contains("packing_contention"))
    profile.packingContention = number(root, "packing_contention", 0, lossPerSecond);
  return profile;
}

Result<Profile> parseProfile(const std::string &text) {
  try {
    return readProfile(parseJson(text));
  } catch (const std::exception &e) {
    return Error{std::string("malformed profile: ") + e.what()};
  }
}

Result<Profile> loadProfile(const std::string &nameOrFile) {
  std::string names;
  for (const auto &[name, text] : shippedProfiles()) {
    if (name == nameOrFile)
      return parseProfile(text);
    names += (names.empty() ? "" : ", ") + name;
  }
  const Result<std::string> text = readInput(nameOrFile);
  if (!text)
    return Error{"no profile '" + nameOrFile + "': neither a readable file (" + text.error() + ") nor one of " + names};
  Result<Profile> profile = parseProfile(*text);
  return profile ? profile : Error{nameOrFile + ": " + profile.error()};
}

// What must be there is said here, with its key: without it estimates would be infinite or nothing, and a plan made of
// them wrong without an error.
Result<Profile> loadDevice(const std::string &device, const std::string &measured, Space home) {
  Result<Profile> profile = loadProfile(device), own = measured.empty() ? Profile() : loadProfile(measured);
  if (!profile || !own)
    return profile ? own : profile;
  const char *missing = profile->link.d2h == 0                                            ? "links.d2h"
                        : profile->rates.memoryBandwidth == 0                             ? "rates.memory_bandwidth"
                        : profile->rates.flops.find("fp32") == profile->rates.flops.end() ? "rates.flops.fp32"
                                                                                          : nullptr;
  if (missing)
    return Error{device + ": the profile has no '" + missing +
                 "', which times that nobody measured are estimated from; give measurements to --profile, beside a "
                 "--device"};
  overrideWith(*profile, *own);
  if (!profile->linkTo(home))
    return Error{
        device + ": the profile has no 'links." + factsOf(home).name +
        "', by which copies of what is offloaded are planned; sluicec --calibrate measures it, --profile takes "
        "what a program's --profile-out has measured"};
  return profile;
}

/// What a program measured on its own replaces what is said of the device, entry by entry. A link without a speed says
/// only what contention is.
void overrideWith(Profile &profile, const Profile &own) {
  for (const auto &[key, op] : own.ops)
    profile.ops[key] = op;
  for (const auto &[codec, rate] : own.codecs)
    profile.codecs[codec] = rate;
  for (const auto &[tensor, errors] : own.errors)
    for (const auto &[codec, error] : errors)
      profile.errors[tensor][codec] = error;
  for (const auto &[convolution, engine] : own.engines)
    profile.engines[convolution] = engine;
  for (const auto &[home, link] : own.links)
    profile.links[home] = link;
  const std::optional<double> contention = own.link.contention ? own.link.contention : profile.link.contention;
  if (own.link.d2h > 0)
    profile.link = own.link;
  if (own.ranks.rate > 0)
    profile.ranks = own.ranks;
  profile.link.contention = contention;
  if (own.codecContention)
    profile.codecContention = own.codecContention;
  if (own.packingContention)
    profile.packingContention = own.packingContention;
  if (own.threads > 0)
    profile.threads = own.threads;
}

} // namespace sluice::planner
