// SPDX-License-Identifier: Apache-2.0
// The CUDA graphs of a session's steps: one for each body and batch slot and, of several ranks, for batches with
// messages between them and without.
#pragma once

#include <cuda_runtime.h>
#include <map>
#include <tuple>

namespace sluice {

class StepGraphs {
public:
  struct Graph {
    cudaGraphExec_t exec = nullptr; ///< null: not made yet
    int enqueued = 0;               ///< times, without the graph or with it
    Graph() = default;
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;
    ~Graph() {
      if (exec)
        cudaGraphExecDestroy(exec);
    }
  };

  /// Counts that the body is enqueued; `first`: it never was in either slot.
  Graph &enqueue(const void *body, int slot, bool meets, bool &first) {
    Graph &graph = graphs[{body, slot, meets}];
    first = graphs[{body, 1 - slot, meets}].enqueued + graph.enqueued++ == 0;
    return graph;
  }

  /// Whether both slots have their graph, of batches without messages.
  bool areMade(const void *body) const {
    const auto has = [&](int slot) {
      const auto found = graphs.find({body, slot, false});
      return found != graphs.end() && found->second.exec;
    };
    return has(0) && has(1);
  }

private:
  std::map<std::tuple<const void *, int, bool>, Graph> graphs;
};

} // namespace sluice
