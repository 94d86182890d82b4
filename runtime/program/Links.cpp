// SPDX-License-Identifier: Apache-2.0
// Medians of several samples, but of a disk, whose writes take long. Contention is the time that a burst of kernels
// takes longer with copies beside it, over the bytes of those copies, or over their seconds where they pack; bursts
// with and without copies alternate, so that what else the machine does meanwhile falls on both.
#include "runtime/program/Links.h"

#include "runtime/Codec.h"
#include "runtime/Kernels.h"
#include "runtime/Random.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace sluice {

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) {
  return std::max(1e-9, std::chrono::duration<double>(Clock::now() - begin).count());
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

LinkRates measureCopies(int samples) {
  constexpr int64_t half = int64_t{32} << 20;
  constexpr int repeats = 2;
  Session session(2 * half, 2 * half, 0);
  Tensor deviceOut = device(0, {half}, Layout::RowMajor, DataType::U8),
         hostIn = host(0, {half}, Layout::RowMajor, DataType::U8);
  Tensor deviceIn = deviceOut, hostOut = hostIn;
  deviceIn.offset = hostOut.offset = static_cast<size_t>(half);
  auto sample = [&](bool toHost, bool toDevice) {
    session.synchronize();
    const auto begin = Clock::now();
    for (int i = 0; i < repeats; ++i) {
      if (toHost)
        copyToHost(session.toHost, deviceOut, hostIn, "link");
      if (toDevice)
        copyToDevice(session.toDevice, hostOut, deviceIn, "link");
    }
    session.synchronize();
    return static_cast<double>(half * repeats) / secondsSince(begin);
  };
  sample(true, true); // touches all pages
  std::vector<double> toHost, toDevice, both;
  for (int i = 0; i < samples; ++i) {
    toHost.push_back(sample(true, false));
    toDevice.push_back(sample(false, true));
    both.push_back(sample(true, true));
  }
  return {median(toHost), median(toDevice), median(both)};
}

/// Half arithmetic, half memory traffic, roughly as in a step.
class Burst {
public:
  Burst() : product("link", {side, side}, {side, side}, {side, side}), statistics("link", image, 1e-5f) {
    buildPrimitives();
    a = place({side, side}), b = place({side, side}), c = place({side, side}), x = place(image, Layout::NHWC);
    mean = place({image[1]}), rstd = place({image[1]});
    const size_t workspace = std::max(product.workspaceBytes(), statistics.workspaceBytes());
    scratch = place({static_cast<int64_t>(workspace)}, Layout::RowMajor, DataType::U8);
    from = place({pieces * values});
    slot = static_cast<size_t>(packedBytes(Codec::Zvc, pieceOf(0))); // more than the raw bytes
    session = std::make_unique<Session>(bytes, pieces * slot, 0);
    for (const Tensor *tensor : {&a, &b, &x})
      clear(session->compute, *tensor, "link");
    std::vector<float> noise(values);
    for (int64_t i = 0; i < values; ++i)
      noise[i] = normal(1, static_cast<uint64_t>(i));
    for (int i = 0; i < pieces; ++i)
      session->write(pieceOf(i), noise.data());
    run({}); // touches the rest
    repeats = std::clamp(static_cast<int>(0.04 / run({}).burst), 1, 100);
  }

  /// Copies out beside the burst, each from and to memory that no cache holds any more.
  struct Beside {
    int copies = 0;
    Codec codec = Codec::None;
  };
  struct Seconds {
    double burst, copies;
  };

  Seconds run(Beside beside) {
    session->synchronize();
    const auto begin = Clock::now();
    for (int i = 0; i < beside.copies; ++i)
      copyOut(pieceOf(i % pieces), beside.codec);
    for (int i = 0; i < repeats; ++i) {
      product.run(session->compute, a, b, {}, c, scratch);
      for (int pass = 0; pass < 3; ++pass)
        statistics.run(session->compute, x, mean, rstd, scratch);
    }
    session->toHost.synchronize();
    const double copies = secondsSince(begin);
    session->compute.synchronize();
    return {secondsSince(begin), copies};
  }

  static constexpr int64_t values = int64_t{1} << 19, pieces = 64;
  static constexpr double piece = 4.0 * values; ///< bytes

private:
  Tensor pieceOf(int i) const { return device(from.offset + static_cast<size_t>(i * piece), {1024, values / 1024}); }

  void copyOut(const Tensor &x, Codec codec) {
    const size_t offset = (x.offset - from.offset) / static_cast<size_t>(piece) * slot;
    if (codec)
      copyToHost(session->toHost, x, host(offset, {packedBytes(codec, x)}, Layout::RowMajor, DataType::U8), "link",
                 codec);
    else
      copyToHost(session->toHost, x, host(offset, x.shape), "link");
  }

  Tensor place(Shape shape, Layout layout = Layout::RowMajor, DataType type = DataType::F32) {
    const Tensor tensor = device(bytes, shape, layout, type);
    bytes += (tensor.bytes() + 255) / 256 * 256;
    return tensor;
  }

  static constexpr int64_t side = 1024;
  const Shape image = {8, 256, 64, 64};
  Matmul product;
  BatchNormStatistics statistics;
  size_t bytes = 0, slot = 0; ///< of the device's arena; of a piece in the host's
  Tensor a, b, c, x, mean, rstd, scratch, from;
  std::unique_ptr<Session> session;
  int repeats = 1;
};

/// Seconds that a burst loses to such copies beside it, by what `share` says of the copies.
template <typename Share> double measureLoss(Burst &burst, Burst::Beside beside, int samples, Share share) {
  burst.run(beside); // touches the host's pages
  double before = burst.run({}).burst;
  std::vector<double> lost;
  for (int i = 0; i < samples; ++i) {
    const Burst::Seconds with = burst.run(beside);
    const double after = burst.run({}).burst;
    lost.push_back((with.burst - (before + after) / 2) / share(with));
    before = after;
  }
  return std::clamp(median(std::move(lost)), 0.0, 1.0);
}

/// Copies are so many that they end well before the burst does.
void measureContentions(LinkRates &rates, int samples) {
  Burst burst;
  const double alone = burst.run({}).burst;
  const int raw = std::max(1, static_cast<int>(0.4 * alone * rates.toHost / Burst::piece));
  rates.contention = measureLoss(burst, {raw}, samples, [&](const Burst::Seconds &) { return raw * Burst::piece; });
  for (const Codec codec : {Codec::Fp16, Codec::Bf16, Codec::Zvc, Codec::Int8}) { // zfp may be missing
    burst.run({1, codec});                                                        // touches the host's pages
    const int packed = std::max(1, static_cast<int>(0.4 * alone / burst.run({1, codec}).copies));
    std::vector<double> seconds;
    for (int i = 0; i < samples; i += 3)
      seconds.push_back(burst.run({packed, codec}).copies);
    rates.codecs[codec] = packed * Burst::piece / median(std::move(seconds));
    if (codec == Codec::Int8) // bound by the core
      rates.packingContention =
          measureLoss(burst, {packed, codec}, samples, [](const Burst::Seconds &with) { return with.copies; });
  }
}

} // namespace

LinkRates measureLinks(int samples) {
  LinkRates rates = measureCopies(samples);
  if (runtimeTarget() == Target::Host)
    measureContentions(rates, samples);
  return rates;
}

namespace {

class Disk {
public:
  explicit Disk(const std::string &folder) {
    std::string path = folder + "/.sluice-XXXXXX";
    descriptor = mkostemp(path.data(), O_CLOEXEC);
    if (descriptor >= 0)
      unlink(path.c_str());
  }
  ~Disk() {
    if (descriptor >= 0)
      close(descriptor);
  }

  std::optional<StorageRates> measure() const {
    StorageRates rates;
    if (descriptor < 0 || !write(rates.write))
      return std::nullopt;
    forget();
    const auto begin = Clock::now();
    off_t at = 0;
    for (std::vector<char> bytes(block); at < written; at += block)
      if (pread(descriptor, bytes.data(), block, at) != static_cast<ssize_t>(block))
        return std::nullopt;
    rates.read = static_cast<double>(written) / secondsSince(begin);
    rates.latency = latency();
    return rates;
  }

private:
  /// Blocks, each until it is on the disk.
  bool write(double &rate) const {
    const std::vector<char> bytes(block, 'x');
    const auto begin = Clock::now();
    for (written = 0; written < most && (written < least || secondsSince(begin) < 0.3); written += block)
      if (pwrite(descriptor, bytes.data(), block, written) != static_cast<ssize_t>(block) || fdatasync(descriptor) != 0)
        return false;
    rate = static_cast<double>(written) / secondsSince(begin);
    return true;
  }

  /// So that what is read next comes from the disk.
  void forget() const { posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED); }

  double latency() const {
    std::vector<double> seconds;
    for (off_t at = 0; at < written; at += written / 8) {
      forget();
      char bytes[512];
      const auto begin = Clock::now();
      if (pread(descriptor, bytes, sizeof bytes, at) > 0)
        seconds.push_back(secondsSince(begin));
    }
    return seconds.empty() ? 0 : median(std::move(seconds));
  }

  static constexpr off_t block = off_t{4} << 20, least = off_t{16} << 20, most = off_t{128} << 20;
  int descriptor = -1;
  mutable off_t written = 0;
};

} // namespace

std::optional<StorageRates> measureStorage(const std::string &folder) { return Disk(folder).measure(); }

} // namespace sluice
