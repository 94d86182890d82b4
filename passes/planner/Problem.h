// SPDX-License-Identifier: Apache-2.0
// One training step as the planner sees it: ops in program order, the buffers that they read and write, and what it
// costs to do something else with a buffer than to keep it. Plain data; no MLIR. The pass plan-memory builds it from
// the IR, tests build it by hand.
//
// Units: bytes, seconds, bytes per second. Positions are indices into `ops`. A buffer is storage, not an SSA value:
// views share one buffer and an in-place op both reads and writes it.
#pragma once

#include "ir/OpKind.h"
#include "runtime/PackedForms.h"
#include "runtime/StreamTable.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::planner {

using Bytes = int64_t;
using Seconds = double;

enum class Phase { Forward, Backward, Update };

/// Another way to run an op, e.g. a convolution algorithm with less workspace. Alternative 0 is the one in use.
struct Alternative {
  Seconds seconds = 0;
  Bytes workspace = 0;
};

/// How an op runs again, where that differs from its first run: BatchNorm normalizes with the statistics that it saved,
/// so it reads them instead of writing them.
struct Rerun {
  Seconds seconds = 0;
  Bytes workspace = 0;
  std::vector<int> reads, writes;
};

/// One kernel of the step, or what stands for several. An in-place op lists its buffer among reads and writes.
struct Op {
  std::string name; ///< ONNX node and what is done for it, for reports
  OpKind kind = OpKind::Other;
  Phase phase = Phase::Forward;
  int stage = 0;           ///< stage of the linearized graph; a backward op has the stage of its forward op
  int group = 0;           ///< ranks that gather together, each of which has as much; 0: all, each a share
  Seconds seconds = 0;     ///< duration on the compute stream
  Bytes summed = 0;        ///< over all ranks together
  Bytes gathered = 0;      ///< from all ranks, or those of `group`
  Seconds exchange = 0;    ///< that takes on the communication stream, from where compute has come to the op: later ops
                           ///< that touch its buffers wait for it, others run beside it
  Bytes workspace = 0;     ///< live only while the op runs
  std::vector<int> reads;  ///< buffers read; resident while the op runs
  std::vector<int> writes; ///< buffers written; resident from the op's start
  std::vector<int> sends;  ///< buffers that go home after it for good (Buffer::born): it is the last that touches them
  bool recomputable = true; ///< forward ops only: may be cloned before a backward reader
  std::vector<Alternative> alternatives;
  /// Who gathers in a run of so many ranks.
  int among(int ranks) const { return group > 0 && group < ranks ? group : ranks; }
  std::optional<Rerun> rerun; ///< empty: runs again as it ran first

  const std::vector<int> &readsWhen(bool again) const { return again && rerun ? rerun->reads : reads; }
  const std::vector<int> &writesWhen(bool again) const { return again && rerun ? rerun->writes : writes; }
};

/// A smaller form of a buffer: all that the backward readers need, or packed bytes that must be unpacked first, which
/// stay on the device or are what copies send.
struct Encoding {
  Codec codec;
  Bytes bytes = 0; ///< size of the encoded form, 0 when it is derived from a counter
  Seconds encodeSeconds = 0, decodeSeconds = 0;
  /// Of packed bytes with a mask: backward ops, in program order, that can read the mask instead of the values. Readers
  /// after the last access that needs values read the mask, so that the values can be freed earlier.
  std::vector<int> maskReaders = {};
};

/// True for codecs whose form the readers use as it is: exact, and for Action::Encode. Others are for Action::Compress.
constexpr bool readDirectly(Codec codec) { return codec && factsOf(codec)->readDirectly; }

/// The codec with a mask beside it.
constexpr Codec masked(Codec codec) {
  codec.mask = true;
  return codec;
}

/// True for codecs that lose bits.
constexpr bool rounds(Codec codec) { return codec && !factsOf(codec)->exact; }

/// The buffer's value can be rebuilt, inexactly, from the final forward content of others: BatchNorm + LeakyReLU from
/// its output, an addend from the sum and from what the other addend is made of.
struct Inversion {
  std::vector<int> sources; ///< on the device when it runs: kept, back by then, run again or rebuilt before
  Seconds seconds = 0;      ///< on the compute stream, what runs again for it included
  Bytes sideBytes = 0;      ///< planned slot for channels whose condition forbids inversion
  Bytes workspace = 0;      ///< live only while it runs, besides the sources and the rebuilt content
  int latest = std::numeric_limits<int>::max(); ///< last position that it may stand before: its parameters change there
  bool fromHalves = true;                       ///< the sources may come back from half precision
  std::optional<double> error = {};             ///< as Buffer::errors, of what is rebuilt; empty: it has no bound
};

/// Bytes that come and go in the step.
struct Buffer {
  std::string name; ///< ONNX tensor that it holds
  Bytes bytes = 0;
  int stage = 0;
  /// True for an activation: written by forward ops, read again by backward ops. Other buffers can only be offloaded.
  bool activation = false;
  /// The content of a variable that is at home in another arena, or in shares of all ranks, for the one op that reads
  /// it there, or changes it: it comes for this op, which lists it among what it writes alone, and goes back
  /// afterwards, in every step. Planned as Keep, it comes right before the op and goes right after it, and compute
  /// waits for both copies; as Offload, its one absence goes around the end of the step (AbsenceKind::AroundEnd).
  bool visits = false;
  /// Of what visits: the op reads it and changes nothing, so that it is dropped instead of going back.
  bool dropped = false;
  /// Of what visits: ops of the step make it, so that it does not come, and any number of them touch it; it goes after
  /// the one that sends it, and is used at home then, by threads there, for so long: a gradient.
  bool born = false;
  Seconds usedAtHome = 0;
  int usedBefore = std::numeric_limits<int>::max(); ///< position that waits for the end of that use
  bool offloadable = false; ///< activations, and others where the planner is given every gap (Gaps.h): gradients
  /// Forward ops whose re-execution restores the content, in order (empty: cannot be recomputed). In-place writers are
  /// all listed.
  std::vector<int> producers;
  std::vector<Encoding> encodings;
  std::optional<Inversion> inversion;
  double zeroFraction = 0; ///< expected share of zeros, for zvc
  /// How gradients compare it with numbers, where packed forms of it are conceivable at all.
  std::optional<Comparison> compared;
  /// By codec with its rate: the relative error of all parameters' gradients together, in the Euclidean norm, where
  /// this buffer alone is packed so. What is missing has no bound.
  std::vector<std::pair<Codec, double>> errors;
  int elementBytes = 4; ///< of the floats or halves that it holds; 0: of nothing that copies can pack
  /// Buffers that are live through the whole step (parameters, states, batch slots) are not listed: they are
  /// Problem::base.
  int id = -1; ///< the caller's own number for it; the planner does not look at it
};

/// The codecs of copies whose size follows from the raw bytes: Problem::codecRates has them.
constexpr bool packsByRawBytes(Codec codec) { return codec == Codec::Zvc || codec == Codec::Fp16; }

/// Share of the bytes that zvc keeps: the elements that are not zero and one bit per element; at most 1.
inline double keptShare(const Buffer &buffer) {
  return buffer.elementBytes > 0 ? std::min(1.0, 1 - buffer.zeroFraction + 0.125 / buffer.elementBytes) : 1;
}

/// What copies between the device and another arena reach. Loaded from passes/profiles/*.json; see Profile.h.
struct Link {
  double d2h = 0, h2d = 0; ///< bytes per second from the device and to it, one direction alone
  double duplex = 0;       ///< bytes per second of each direction when both run; 0: one transfer at a time
  Seconds latency = 0;     ///< fixed cost of one copy
  /// Seconds that compute loses per byte copied beside it, at most 1: where copies take a core or the memory bus from
  /// it. Empty: unknown, taken as 0.
  std::optional<double> contention = std::nullopt;
};

/// Everything that strategies, simulator and checker are told; checkProblem() refuses what makes no sense.
struct Problem {
  std::vector<Op> ops; ///< forward, then backward with updates, in program order
  std::vector<Buffer> buffers;
  Bytes base = 0;        ///< live through the whole step: parameters, states, optimizer state, constants, batch slots
  Bytes alignment = 256; ///< every slot's offset and size is rounded up to it
  /// Arena of what is offloaded, which also says on which streams its copies run. There is one for the whole problem,
  /// and so for the plan.
  Space home = Space::Host;
  Link link; ///< between the device and that arena
  /// The same of buffers that visit the device. Space::Device: they come from the shares that all ranks have, on the
  /// communication stream, and are dropped.
  Space visitorsHome = Space::Host;
  Link visitorsLink = {};
  /// Bytes of raw data per second, for codecs of copies whose size follows from the raw bytes. Others are as fast as
  /// the buffers' packed forms say.
  std::vector<std::pair<Codec, double>> codecRates;
  /// Copies with "zvc" leave zeros out before the link, so that it carries what is not zero; else after it.
  bool zerosStay = false;
  /// Seconds that compute loses per second of the codec stream beside it, from 0 to 1: what packs and unpacks in device
  /// memory runs on the device's own cores.
  double codecContention = 0;
  /// The same per second that copies pack or unpack beside it: where a copy's codec runs on cores that compute has.
  double packingContention = 0;
  /// The same per second of the communication stream, and of what is used at home.
  double exchangeContention = 0, homeContention = 0;
  /// Most that totalError() of a plan may be (Errors.h); empty: no limit, nothing is added up.
  std::optional<double> errorBudget = std::nullopt;
  bool errorsAreDefaults = false; ///< some of the buffers' errors are what a codec usually does, not measured ones
};

inline Space homeOf(const Problem &problem, int buffer) {
  return problem.buffers[buffer].visits ? problem.visitorsHome : problem.home;
}
inline const Link &linkOf(const Problem &problem, int buffer) {
  return problem.buffers[buffer].visits ? problem.visitorsLink : problem.link;
}

/// That brings visitors.
inline StreamId visitorsStream(const Problem &problem) {
  return problem.visitorsHome == Space::Device ? StreamId::Communication : factsOf(problem.visitorsHome).in;
}
/// Whether buffers come from the shares of all ranks.
inline bool visitFromRanks(const Problem &problem) {
  return problem.visitorsHome == Space::Device &&
         std::any_of(problem.buffers.begin(), problem.buffers.end(), [](const Buffer &b) { return b.visits; });
}
/// That brings a buffer back.
inline StreamId arrivalStream(const Problem &problem, int buffer) {
  return problem.buffers[buffer].visits ? visitorsStream(problem) : factsOf(problem.home).in;
}

/// Whether the speed is known of copies with a codec whose size follows from the raw bytes.
inline bool copiesWith(const Problem &problem, Codec codec) {
  return std::any_of(problem.codecRates.begin(), problem.codecRates.end(),
                     [&](const auto &rate) { return rate.first == codec; });
}

/// Whether copies of what is offloaded can pack the buffer with this codec: with those that it has a packed form of,
/// and with the two whose size follows from the raw bytes. Halves are as small as fp16 makes floats.
inline bool packsOnCopies(const Problem &problem, int buffer, Codec codec) {
  const Buffer &what = problem.buffers[buffer];
  if (!packsFor(factsOf(problem.home), codec))
    return false;
  if (packsByRawBytes(codec))
    return copiesWith(problem, codec) && (codec.kind == Codec::Zvc ? what.elementBytes > 0 : what.elementBytes == 4);
  return !readDirectly(codec) && std::any_of(what.encodings.begin(), what.encodings.end(),
                                             [&](const Encoding &form) { return form.codec == codec; });
}

} // namespace sluice::planner
