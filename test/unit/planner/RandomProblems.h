// SPDX-License-Identifier: Apache-2.0
// Random training steps for fuzzing: branching forward graphs with in-place ops, long skips and masks, and their
// backward halves.
#pragma once

#include "passes/planner/Simulate.h"

#include <algorithm>
#include <random>

namespace sluice::planner::test {

struct RandomShape {
  int forwardOps = 12;
  double skipChance = 0.3;      ///< an op also reads an older value
  double inPlaceChance = 0.2;   ///< an op overwrites its input
  double overwriteChance = 0.3; ///< a gradient takes the place of an activation that is read for the last time
  Bytes unit = 4096;            ///< sizes are 1..64 of these
  bool slowLink = false;
  bool codecs = false;   ///< packed forms, codecs of copies, inversions and other ways to run again
  bool visitors = false; ///< updates whose states are at home elsewhere, ops that fetch what they read
  bool gathers = false;  ///< beside it: that comes from shares of all ranks, which updates change behind sums over them
};

/// A packed form of the buffer whose mask some of the backward ops read that read the buffer and do not write it.
inline Encoding packedWithSigns(const Problem &p, int b, std::mt19937 &random) {
  Encoding form{masked(Codec::Zfp), p.buffers[b].bytes / 4, 1e-5 * (random() % 50), 1e-5 * (random() % 50)};
  for (int k = 0; k < static_cast<int>(p.ops.size()); ++k) {
    const Op &op = p.ops[k];
    const bool reads = std::count(op.reads.begin(), op.reads.end(), b) > 0,
               writes = std::count(op.writes.begin(), op.writes.end(), b) > 0;
    if (op.phase != Phase::Forward && reads && !writes && random() % 10 < 6)
      form.maskReaders.push_back(k);
  }
  return form;
}

/// Packed forms, inversions from any later value, BatchNorm-like ops that save statistics and read them again, ops with
/// faster and smaller alternatives.
inline void addCodecs(Problem &p, std::mt19937 &random) {
  auto chance = [&](double share) { return random() % 1000 < share * 1000; };
  p.codecRates = {{Codec::Fp16, 1e8 * (1 + random() % 30)}, {Codec::Zvc, 1e7 * (1 + random() % 30)}};
  p.codecContention = 0.25 * static_cast<double>(p.buffers.size() % 5);
  p.zerosStay = p.ops.size() % 2;
  const int buffers = p.buffers.size();
  for (int b = 0; b < buffers; ++b) {
    Buffer &buffer = p.buffers[b];
    buffer.elementBytes = b % 5 == 0 ? 2 : b % 5 == 1 ? 0 : 4;
    buffer.zeroFraction = 0.1 * static_cast<double>(buffer.bytes / 4096 % 11);
    for (const Codec::Kind codec : {Codec::Zfp, Codec::Fp16, Codec::Int8})
      if (chance(0.5))
        buffer.encodings.push_back({codec,
                                    buffer.bytes / (codec == Codec::Zfp    ? 5
                                                    : codec == Codec::Int8 ? 3
                                                                           : 2),
                                    1e-5 * (random() % 50), 1e-5 * (random() % 50)});
    if (chance(0.3))
      buffer.encodings.push_back(packedWithSigns(p, b, random));
    if (b + 1 < buffers && chance(0.4))
      buffer.inversion = Inversion{
          {b + 1 + static_cast<int>(random() % (buffers - b - 1))}, 1e-5 * (1 + random() % 40), buffer.bytes / 16};
    if (buffer.inversion && chance(0.5)) { // a sum
      for (int other : {static_cast<int>(random() % buffers), static_cast<int>(random() % buffers)})
        if (other != b)
          buffer.inversion->sources.push_back(other);
      buffer.inversion->workspace = 4096 * static_cast<int>(random() % 20);
      buffer.inversion->fromHalves = false;
      if (chance(0.5))
        buffer.inversion->latest = static_cast<int>(random() % p.ops.size());
    }
  }
  const int ops = p.ops.size();
  for (int k = 0; k < ops; ++k) {
    Op &op = p.ops[k];
    if (chance(0.2))
      op.alternatives = {{op.seconds, op.workspace},
                         {op.seconds / 2, op.workspace + 4096 * static_cast<int>(random() % 20)},
                         {op.seconds * 2, op.workspace / 2}};
    const bool inPlace = op.writes == op.reads;
    if (op.phase != Phase::Forward || op.reads.empty() || inPlace || op.rerun || !chance(0.3))
      continue;
    Buffer statistics;
    statistics.name = op.name + ".statistics";
    statistics.bytes = 512;
    statistics.activation = statistics.offloadable = true;
    statistics.producers = {k};
    const int side = p.buffers.size();
    p.buffers.push_back(statistics);
    Rerun rerun = {op.seconds / 2, op.workspace / 2, op.reads, op.writes};
    rerun.reads.push_back(side);
    op.writes.push_back(side);
    op.rerun = rerun;
    for (int later = ops - 1; later > k; --later)
      if (p.ops[later].phase == Phase::Backward && p.ops[later].stage == op.stage) {
        p.ops[later].reads.push_back(side);
        break;
      }
  }
}

/// Gradients that are born where an activation dies take its place.
inline void overwriteActivations(Problem &p, std::mt19937 &random, double chance) {
  auto last = [&](int b) {
    int found = -1;
    for (int k = 0; k < static_cast<int>(p.ops.size()); ++k)
      for (const auto *list : {&p.ops[k].reads, &p.ops[k].writes})
        found = std::find(list->begin(), list->end(), b) != list->end() ? k : found;
    return found;
  };
  for (int b = 0; b < static_cast<int>(p.buffers.size()); ++b) {
    const int at = last(b);
    if (!p.buffers[b].activation || random() % 1000 >= chance * 1000)
      continue;
    Op &op = p.ops[at];
    const auto gradient = std::find_if(op.writes.begin(), op.writes.end(), [&](int g) {
      return !p.buffers[g].activation && !p.buffers[g].visits && p.buffers[g].bytes <= p.buffers[b].bytes &&
             std::find(op.reads.begin(), op.reads.end(), g) == op.reads.end();
    });
    if (op.phase != Phase::Backward || gradient == op.writes.end())
      continue;
    for (Op &other : p.ops)
      for (auto *list : {&other.reads, &other.writes})
        std::replace(list->begin(), list->end(), int(*gradient), b);
  }
}

/// Makes the parts of a random problem in turn, all from one generator.
struct RandomProblem {
  RandomProblem(unsigned seed, const RandomShape &shape) : shape(shape), random(seed) {}

  int below(int n) { return static_cast<int>(random() % n); }
  bool chance(double share) { return random() % 1000 < share * 1000; }

  int addBuffer(const std::string &name, Bytes bytes, bool activation) {
    Buffer b;
    b.name = name;
    b.bytes = bytes;
    b.activation = b.offloadable = activation;
    p.buffers.push_back(b);
    return static_cast<int>(p.buffers.size()) - 1;
  }

  void addLink(unsigned seed) {
    const double rate = shape.slowLink ? 2e7 : 1e9;
    p.link = {rate, rate * (1 + below(3)) / 2, chance(0.3) ? 0 : rate * 0.8, chance(0.5) ? 1e-5 : 0};
    if (seed % 5 == 1) // a share of compute's time while one direction is busy, or more than all of it
      p.link.contention = (seed % 2 ? 0.4 : 1.5) / rate;
    p.packingContention = 0.25 * (seed % 5);
  }

  void addInput() {
    values = {addBuffer("input", shape.unit * (1 + below(64)), true)};
    Op load;
    load.name = "load";
    load.writes = values;
    load.recomputable = false;
    p.ops.push_back(load);
    p.buffers[0].producers = {};
  }

  void addForwardOp(int i) {
    Op op;
    op.name = "f" + std::to_string(i);
    op.kind = static_cast<OpKind>(below(5));
    op.stage = i;
    op.seconds = 1e-5 * (1 + below(100));
    op.workspace = chance(0.3) ? shape.unit * below(20) : 0;
    op.reads = {values.back()};
    if (chance(shape.skipChance)) {
      const int other = values[below(values.size())];
      if (other != op.reads[0])
        op.reads.push_back(other);
    }
    if (chance(shape.inPlaceChance) && op.reads.size() == 1 && i > 0) {
      op.writes = op.reads;
      values.push_back(op.reads[0]);
      p.buffers[op.reads[0]].producers.push_back(p.ops.size());
    } else {
      op.writes = {addBuffer("v" + std::to_string(i), shape.unit * (1 + below(64)), true)};
      values.push_back(op.writes[0]);
      p.buffers[op.writes[0]].producers = {static_cast<int>(p.ops.size())};
      p.buffers[op.writes[0]].stage = i;
      if (chance(0.3))
        p.buffers[op.writes[0]].encodings.push_back({Codec::Mask, (p.buffers[op.writes[0]].bytes + 31) / 32, 1e-6, 0});
    }
    if (shape.visitors && chance(0.4)) {
      const int fetched = addFetched(op);
      op.rerun = Rerun{op.seconds + copySeconds(p, fetched, {}, false), op.workspace + p.buffers[fetched].bytes,
                       op.reads, op.writes};
      op.writes.push_back(fetched);
    }
    p.ops.push_back(op);
  }

  /// A parameter that the op reads and drops.
  int addFetched(const Op &op) {
    const int fetched = addBuffer(op.name + ".parameter", shape.unit * (1 + below(64)), false);
    p.buffers.back().visits = p.buffers.back().dropped = true;
    return fetched;
  }

  void addLoss() {
    gradient.assign(p.buffers.size(), -1);
    gradient[values.back()] = addBuffer("seed gradient", p.buffers[values.back()].bytes, false);
    Op loss;
    loss.name = "loss";
    loss.phase = Phase::Backward;
    loss.reads = {values.back()};
    loss.writes = {gradient[values.back()]};
    p.ops.push_back(loss);
  }

  /// Reads some of what forward op k saw, the incoming gradients, and adds to the outgoing ones.
  void addBackwardOp(int k) {
    const Op f = p.ops[k];
    Op op;
    op.name = "b" + std::to_string(k);
    op.phase = Phase::Backward;
    op.kind = f.kind;
    op.stage = f.stage;
    op.seconds = f.seconds * 2;
    op.workspace = f.workspace;
    if (gradient[f.writes[0]] < 0)
      return;
    op.reads = {gradient[f.writes[0]]};
    for (int b : f.reads)
      if (chance(0.7))
        op.reads.push_back(b);
    if (chance(0.4) && std::find(op.reads.begin(), op.reads.end(), f.writes[0]) == op.reads.end())
      op.reads.push_back(f.writes[0]);
    for (int b : f.reads) {
      if (b == f.writes[0]) {
        op.writes.push_back(gradient[b]);
        continue;
      }
      if (gradient[b] < 0)
        gradient[b] = addBuffer("d" + p.buffers[b].name, p.buffers[b].bytes, false);
      else
        op.reads.push_back(gradient[b]);
      op.writes.push_back(gradient[b]);
    }
    if (shape.visitors && chance(0.4))
      op.writes.insert(op.writes.begin(), addFetched(op));
    p.ops.push_back(op);
    if (shape.visitors && chance(0.3))
      sendGradient();
    else if (shape.visitors && chance(0.6))
      addUpdate(k);
  }

  /// That the op makes for an update at home.
  void sendGradient() {
    const int sent = addBuffer(p.ops.back().name + ".gradient", shape.unit * (1 + below(64)), false);
    p.buffers.back().visits = p.buffers.back().born = true;
    p.buffers.back().usedAtHome = 1e-5 * below(40);
    p.ops.back().writes.push_back(sent);
    p.ops.back().sends = {sent};
  }

  /// Of a parameter with one or two states that visit the device, or by what all ranks have summed.
  void addUpdate(int k) {
    Op op;
    if (shape.gathers) {
      op.phase = Phase::Backward;
      op.name = "s" + std::to_string(k);
      op.stage = p.ops.back().stage;
      op.reads = op.writes = {p.ops.back().writes.back()};
      op.exchange = 1e-5 * (1 + below(200));
      p.ops.push_back(op);
      op = {};
    }
    op.name = "u" + std::to_string(k);
    op.phase = Phase::Update;
    op.stage = p.ops.back().stage;
    op.seconds = 1e-5 * (1 + below(20));
    op.reads = {p.ops.back().writes.back()};
    for (int state = 0; !shape.gathers && state < 1 + below(2); ++state) {
      op.writes.push_back(addBuffer(op.name + ".state" + std::to_string(state), shape.unit * (1 + below(64)), false));
      p.buffers.back().visits = true;
    }
    p.ops.push_back(op);
  }

  void addVisitorsLink() {
    if (shape.gathers) {
      const double rate = 1e8 * (1 + below(20));
      p.visitorsHome = Space::Device;
      p.visitorsLink = {rate, rate, rate, 1e-5};
      return;
    }
    p.visitorsHome = chance(0.5) ? p.home : Space::Storage;
    const double rate = 1e8 * (1 + below(20));
    p.visitorsLink = p.visitorsHome == p.home ? p.link : Link{rate, rate * 2, 0, 1e-5};
  }

  const RandomShape &shape;
  std::mt19937 random;
  Problem p;
  std::vector<int> values;   ///< what forward ops gave, the newest last
  std::vector<int> gradient; ///< by buffer; -1: none yet
};

/// A well-formed problem; the same one for the same seed.
inline Problem randomProblem(unsigned seed, const RandomShape &shape = {}) {
  RandomProblem made(seed, shape);
  Problem &p = made.p;
  p.base = made.below(100) * 256;
  made.addLink(seed);
  if (shape.visitors)
    made.addVisitorsLink();
  made.addInput();
  for (int i = 0; i < shape.forwardOps; ++i)
    made.addForwardOp(i);
  const int forward = p.ops.size(), activations = p.buffers.size();
  made.addLoss();
  for (int k = forward - 1; k > 0; --k)
    made.addBackwardOp(k);
  for (int b = 0; b < activations; ++b) {
    bool later = false;
    for (size_t k = forward; k < p.ops.size(); ++k)
      later |= std::find(p.ops[k].reads.begin(), p.ops[k].reads.end(), b) != p.ops[k].reads.end();
    p.buffers[b].activation = p.buffers[b].offloadable = later;
  }
  std::mt19937 places(seed + 1);
  overwriteActivations(p, places, shape.overwriteChance);
  if (shape.codecs)
    addCodecs(p, made.random);
  return p;
}

} // namespace sluice::planner::test
