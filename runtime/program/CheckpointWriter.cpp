// SPDX-License-Identifier: Apache-2.0
// The thread touches the copy, never the session, so steps run beside it. The copy is taken and given back by turns:
// the trainer fills it when no job is pending, the thread reads it until the job is done.

#include "runtime/program/CheckpointWriter.h"

#include "runtime/files/OutputFile.h"
#include "runtime/program/KeptCheckpoints.h"
#include "runtime/program/Recipe.h"
#include "runtime/program/SharedStates.h"

#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

namespace sluice {

static size_t savedBytes(const Program &program, bool trainedOnly) {
  size_t bytes = 0;
  for (int i = 0; i < program.variableCount; ++i)
    if (isSaved(program.variables[i], trainedOnly))
      bytes += program.variables[i].saved().bytes();
  return bytes;
}

size_t checkpointCopyBytes(const Program &program, bool trainedOnly) {
  const size_t bytes = savedBytes(program, trainedOnly), limit = program.hostBudget;
  return limit == 0 || (program.hostBytes <= limit && bytes <= limit - program.hostBytes) ? bytes : 0;
}

void announceCheckpointCopy(const Program &program, bool trainedOnly) {
  if (const size_t bytes = checkpointCopyBytes(program, trainedOnly))
    std::printf("checkpoints:   %zu bytes more of host memory, from which they are written while training goes on\n",
                bytes);
  else
    std::printf("checkpoints:   training waits while they are written: a copy of %zu bytes beside %zu is more than the "
                "%zu that the budget leaves for host memory\n",
                savedBytes(program, trainedOnly), program.hostBytes, program.hostBudget);
  std::fflush(stdout);
}

/// Touched here: memory that was announced is there when the first checkpoint is due.
static std::unique_ptr<char[]> takeMemory(size_t bytes) {
  if (bytes == 0)
    return nullptr;
  std::unique_ptr<char[]> memory(new (std::nothrow) char[bytes]);
  if (!memory)
    throw MemoryNotAvailable(text("cannot have ", bytes, " bytes of host memory for the copy that checkpoints are ",
                                  "written from; compile with a --host-budget to do without"));
  std::memset(memory.get(), 0, bytes);
  return memory;
}

CheckpointWriter::CheckpointWriter(Session &session, const Program &program, std::string folder, int64_t keep,
                                   std::string recipe, bool trainedOnly, bool anew)
    : session(session), program(program), folder(std::move(folder)), keep(keep), trainedOnly(trainedOnly), anew(anew),
      recipe(std::move(recipe)), copyBytes(checkpointCopyBytes(program, trainedOnly)), copy(takeMemory(copyBytes)) {
  if (copy)
    writer = std::thread([this] { work(); });
}

CheckpointWriter::~CheckpointWriter() {
  if (!copy)
    return;
  {
    std::unique_lock lock(mutex);
    ends = true;
    changed.notify_all();
  }
  writer.join();
}

void CheckpointWriter::wait(std::unique_lock<std::mutex> &lock) {
  changed.wait(lock, [this] { return !job; });
}

void CheckpointWriter::save(const RunState &state) { submit({state, false}); }
void CheckpointWriter::saveBest(const RunState &state) { submit({state, true}); }

void CheckpointWriter::submit(const Job &next) {
  finish();
  if (!copy)
    return write(next);
  copyVariables();
  std::unique_lock lock(mutex);
  job = next;
  changed.notify_all();
}

void CheckpointWriter::copyVariables() {
  char *to = copy.get();
  for (int i = 0; i < program.variableCount; ++i)
    if (isSaved(program.variables[i], trainedOnly))
      readSaved(session, program.variables[i], [&](const void *data, size_t bytes) {
        std::memcpy(to, data, bytes);
        to += bytes;
      });
}

void CheckpointWriter::work() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return job || ends; });
    if (!job)
      return;
    const Job current = *job;
    lock.unlock();
    std::exception_ptr error;
    try {
      write(current);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !failure)
      failure = error;
    job.reset();
    changed.notify_all();
  }
}

/// On the writing thread where there is one.
void CheckpointWriter::write(const Job &current) {
  if (!recipe.empty()) {
    OutputFile file(recipePath(folder));
    file.write(recipe.data(), recipe.size());
    file.commit();
    recipe.clear();
  }
  std::vector<TensorToWrite> tensors;
  const char *from = copy.get();
  for (int i = 0; i < program.variableCount; ++i) {
    if (!isSaved(program.variables[i], trainedOnly))
      continue;
    const Variable &variable = program.variables[i];
    const Tensor &tensor = variable.saved();
    auto produce = [this, &variable, from](const TensorToWrite::Put &put) {
      if (copy)
        put(from, variable.saved().bytes());
      else
        readSaved(session, variable, put);
    };
    tensors.push_back({variable.name, tensor.type, tensor.shape, produce});
    if (copy)
      from += tensor.bytes();
  }
  if (!current.best && keep > 1)
    keepFormer(folder, program, current.state.step);
  writeSafetensors(current.best ? bestPath(folder) : checkpointPath(folder), metadataOf(program, current.state),
                   tensors);
  const bool drops = std::exchange(anew, false); // whichever is written first
  if (current.best)
    return;
  if (drops)
    dropBest(folder, program);
  if (keep > 1)
    dropFormer(folder, program, keep - 1);
  std::unique_lock lock(mutex);
  written = current.state.step;
}

void CheckpointWriter::check() {
  std::unique_lock lock(mutex);
  if (failure)
    std::rethrow_exception(std::exchange(failure, nullptr));
}

void CheckpointWriter::finish() {
  {
    std::unique_lock lock(mutex);
    wait(lock);
  }
  check();
}

int64_t CheckpointWriter::lastWritten() {
  std::unique_lock lock(mutex);
  wait(lock);
  return written;
}

} // namespace sluice
