// SPDX-License-Identifier: Apache-2.0
// A call of the host in a CUDA stream, after a copy of the step's state from the device.
#include "runtime/cuda/HomeUpdate.h"

#include "runtime/cuda/Device.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice {

namespace {

/// What one call does. It stays, at its place, as a captured graph has its address.
struct HomeJob {
  HomeJob() {
    void *address = nullptr;
    checkCuda(cudaHostAlloc(&address, sizeof(DeviceState), cudaHostAllocDefault), "cannot lock memory for an update");
    state = static_cast<DeviceState *>(address);
  }
  DeviceState *state; ///< locked, for the copy
  std::function<void(const UpdateFactors &)> work;
};

/// By what the call changes. An arena at the address of an earlier one has its jobs.
HomeJob &jobOf(const void *changed) {
  static std::mutex mutex;
  static std::map<const void *, std::unique_ptr<HomeJob>> jobs;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<HomeJob> &job = jobs[changed];
  if (!job)
    job = std::make_unique<HomeJob>();
  return *job;
}

void CUDART_CB runJob(void *address) {
  const auto &job = *static_cast<const HomeJob *>(address);
  if (job.state->update.changes())
    job.work(job.state->update);
}

void launchJob(Stream &stream, Node node, const char *op, const void *changed,
               std::function<void(const UpdateFactors &)> work) {
  HomeJob &job = jobOf(changed);
  job.work = std::move(work);
  const DeviceState *state = deviceState(stream);
  stream.launch(node.as(OpRole::Update), op, [&] {
    checkCuda(cudaMemcpyAsync(job.state, state, sizeof *state, cudaMemcpyDeviceToHost, native(stream)),
              "cannot copy the step's state");
    checkCuda(cudaLaunchHostFunc(native(stream), runJob, &job), "cannot call the host for an update");
  });
}

/// As many threads as have something to do; where one cannot be had, this one does its work.
template <typename Body> void overThreads(int64_t count, const Body &body) {
  constexpr int64_t least = int64_t(1) << 18, most = 16;
  const int64_t threads =
      std::clamp<int64_t>(count / least, 1, std::min<int64_t>(most, std::max(1u, std::thread::hardware_concurrency())));
  std::vector<std::thread> others;
  for (int64_t i = 1; i < threads; ++i) {
    const int64_t begin = count * i / threads, end = count * (i + 1) / threads;
    try {
      others.emplace_back([&body, begin, end] { body(begin, end); });
    } catch (const std::system_error &) {
      body(begin, end);
    }
  }
  body(0, count / threads);
  for (std::thread &other : others)
    other.join();
}

template <typename Rule>
void updateRange(const HomeTensors &p, int64_t begin, int64_t end, float factor, const UpdateFactors &f) {
  float *__restrict w = p.w;
  const float *__restrict dw = p.dw;
  float *first = p.first, *second = p.second;
  for (int64_t i = begin; i < end; ++i)
    Rule::apply(w[i], f.elementOf(dw[i]) * factor, first[i], second[i], f);
}

} // namespace

template <typename Rule, typename Plain>
void updateAtHome(Stream &stream, Node node, const char *op, const HomeTensors &p) {
  launchJob(stream, node, op, p.w, [p](const UpdateFactors &step) {
    const UpdateFactors f = step.of(p.group, p.decoupled);
    const float factor = f.clipFactor(p.norm);
    const bool plain = p.plain || f.momentum == 0;
    overThreads(p.count, [&](int64_t begin, int64_t end) {
      plain ? updateRange<Plain>(p, begin, end, factor, f) : updateRange<Rule>(p, begin, end, factor, f);
    });
  });
}

template void updateAtHome<MomentumSgd, PlainSgd>(Stream &, Node, const char *, const HomeTensors &);
template void updateAtHome<AdamRule, AdamRule>(Stream &, Node, const char *, const HomeTensors &);
template void updateAtHome<AdagradRule, AdagradRule>(Stream &, Node, const char *, const HomeTensors &);
template void updateAtHome<MomentumRmsProp, PlainRmsProp>(Stream &, Node, const char *, const HomeTensors &);
template void updateAtHome<LionRule, LionRule>(Stream &, Node, const char *, const HomeTensors &);

void averageAtHome(Stream &stream, Node node, const char *op, const float *w, float *average, int64_t count) {
  launchJob(stream, node, op, average, [=](const UpdateFactors &f) {
    const float keep = f.first ? 0 : f.averageDecay;
    overThreads(count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        average[i] = averagedElement(w[i], average[i], keep);
    });
  });
}

} // namespace sluice
