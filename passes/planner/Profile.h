// SPDX-License-Identifier: Apache-2.0
// Device profiles: versioned JSON with units and provenance, one format for shipped estimates and for what a generated
// binary measured
// (`--profile-out`): {"version":1, "device", "threads",
// "ops":[{"node","op","seconds","calls","workspace_bytes","zeros"}],
// "links":{"d2h","h2d","duplex"[,"latency_seconds"][,"contention"][,ARENA:{the same}][,"ranks":{"rate"
// [,"latency_seconds"][,"overhead_seconds"][,"contention"]}]}, "codecs":{name: bytes/s}
// [,"codec_contention"][,"packing_contention"][,"errors":[{"tensor","codec","error"}]]}; shipped ones add
// "rates" to estimate ops from, and those that sluicec measured on its machine
// "samples":[{"kind"[,"type"],"size":[...], "rate"}] of kernels besides, of tensors of "fp32" if no other type is said.
// Links are between device and host memory; ARENA is the name of another arena that plans may use. "duplex" is the rate
// of each direction while both run, "contention" what Link says, "codec_contention" and "packing_contention" what
// Problem says.
#pragma once

#include "passes/planner/Interconnect.h"
#include "runtime/Result.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sluice::planner {

/// What a step took in all calls that have one name. `zeros`: of each tensor that they write, in order.
struct MeasuredOp {
  Seconds seconds = 0;
  int calls = 1;
  Bytes workspace = 0;
  std::vector<double> zeros = {};
};

/// A vendor's engine that was the fastest on this device.
struct MeasuredEngine {
  std::string name;
  int parts = 1; ///< of the batch
};

/// Of updates in host memory, where a profile does not say it: less than two channels of DDR4-3200, which plain
/// desktops have, leave beside a training GPU.
inline constexpr double assumedHostBandwidth = 20e9;

/// Peak rates in operations or bytes per second and the share of them that kernels reach.
struct Rates {
  std::map<std::string, double> flops; ///< by precision: "fp32", "tf32", "bf16", "fp16"
  double memoryBandwidth = 0;
  double hostBandwidth = 0; ///< of updates by threads of the host, in its memory; 0: unknown
  Seconds launch = 0;       ///< fixed cost of one kernel
  double convEfficiency = 1, matmulEfficiency = 1, bandwidthEfficiency = 1;
};

/// What an estimate depends on. `sample` names the kind of a kernel and `type` that of its tensors as profiles with
/// samples do, `size` lists what its rate depends on, in the order of that kind's samples. `alike` is a kind of as many
/// sizes to take where there are none of that.
struct Work {
  OpKind kind = OpKind::Other;
  double flops = 0, bytes = 0;
  std::string precision = "fp32", sample = {};
  std::vector<double> size = {};
  std::string type = "fp32", alike = {};
};

/// A kernel that was measured: operations (convolutions and products) or bytes (all others) a second.
struct Sample {
  std::vector<double> size;
  double rate = 0;
};

/// Sizes of samples of a convolution with `in` and `out` channels a group, of one with a channel a group, and of a
/// product. How many octaves apart two kernels are says how different their rates may be, so that what matters less
/// appears as a root. `side`, `pixels`: of the smaller image, over the batch; `area`: of the filter.
std::vector<double> convSize(double in, double out, double side, double pixels, double area, double stride);
std::vector<double> depthwiseSize(double channels, double side, double pixels, double area, double stride);
std::vector<double> productSize(double rows, double inner, double columns);
std::vector<double> attentionSize(double rows, double keys, double depth);
/// The last size of every sample: what else is touched before an operand is touched again, in bytes. It matters while
/// caches hold that.
double surroundings(double bytes);

/// Mean of the samples' rates, weighted by how near they are in octaves of every size: those of other sizes hardly
/// count. There must be some, of as many sizes.
double rateNear(const std::vector<Sample> &samples, const std::vector<double> &size);

/// Of one device. Absent figures are 0 or empty, which each of them says what it means.
struct Profile {
  std::string device, provenance;
  int threads = 0;
  Bytes memory = 0;            ///< of the device; 0: unknown
  Link link;                   ///< between device and host memory
  std::map<Space, Link> links; ///< of other arenas
  Interconnect ranks;          ///< between processes of this machine; rate 0: unknown
  Rates rates;                 ///< memoryBandwidth 0: the profile holds measurements only
  /// By kind and type; none: times follow from `rates`.
  std::map<std::pair<std::string, std::string>, std::vector<Sample>> samples;
  std::map<std::pair<std::string, std::string>, MeasuredOp> ops; ///< by (node, op)
  std::map<Codec, double> codecs;                                ///< raw bytes per second
  std::optional<double> codecContention;                         ///< see Problem; empty: unknown, taken as 0
  std::optional<double> packingContention;                       ///< likewise
  std::map<std::string, MeasuredEngine> engines;                 ///< by runtime/Engines.h's words for a convolution
  /// By tensor and by codec with its rate: relative error of the gradients, see Errors.h; infinite for what the codec
  /// refuses ("refused":true instead of "error").
  std::map<std::string, std::map<Codec, double>> errors;

  /// What a program measured of a node's op; null where the profile has none.
  const MeasuredOp *measured(const std::string &node, const std::string &op) const;

  /// That of the nearest samples of the work's kind and type, else of fp32, else of the kind that is alike. Empty where
  /// there are none.
  std::optional<double> rateOf(const Work &work) const;

  /// At that rate, and a launch at least. Without one, a roofline: arithmetic at the kind's share of the precision's
  /// peak, or the bytes moved, whichever is longer, plus the launch.
  Seconds estimate(const Work &work) const;
  /// Between the device and that arena; null where the profile does not say it.
  const Link *linkTo(Space home) const {
    const auto found = links.find(home);
    return home == Space::Host ? &link : found == links.end() ? nullptr : &found->second;
  }
  /// Of an op that waits for memory.
  Seconds estimate(OpKind kind, double flops, double bytes) const {
    return estimate(Work{kind, flops, bytes, "fp32", "elementwise", {bytes, surroundings(1e18)}});
  }
};

/// Errors name key and value. This is where numbers are checked: what passes is finite and in a range in which planning
/// stays so.
Result<Profile> parseProfile(const std::string &text);

/// A shipped profile by name ("v100-pcie"), or a file.
Result<Profile> loadProfile(const std::string &nameOrFile);

/// A profile that all times of a program can be taken or estimated from: the device's, with the measurements of another
/// file where one is named. Errors: one cannot be read, or the device's lacks rates or links, that to `home` among
/// them.
Result<Profile> loadDevice(const std::string &device, const std::string &measured, Space home = Space::Host);

/// Measurements of `own` replace what `profile` estimates: ops, links (each that it has), codecs and errors that it
/// has, and the contentions of links, codecs and packing copies where it says those, too.
void overrideWith(Profile &profile, const Profile &own);

/// Shipped profiles as (name, JSON text); generated at build time from passes/profiles.
const std::vector<std::pair<std::string, std::string>> &shippedProfiles();

} // namespace sluice::planner
