// SPDX-License-Identifier: Apache-2.0
// Control flow, sequences and optionals of a graph, replaced by the plain nodes that they come to: the branch that a
// known condition takes, the body of a loop once a trip, the tensors that a sequence holds by their names. No MLIR in
// here: what values are known, the import of the nodes so far tells.
#ifndef SLUICE_FRONTEND_FLATTENING_H
#define SLUICE_FRONTEND_FLATTENING_H

#include "frontend/HostTensor.h"
#include "frontend/Limits.h"
#include "onnx/onnx_pb.h"
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace sluice {

/// Whether the op is taken apart here: If, Loop, Scan, those of sequences and those of optionals.
bool isStructure(const std::string &opType);
bool hasStructure(const onnx::GraphProto &graph);

/// The first output that has a name; empty where there is none.
std::string firstOutput(const onnx::NodeProto &node);

/// The import of the flat graph, a node at a time.
class FlatImport {
public:
  virtual ~FlatImport() = default;
  virtual void node(const onnx::NodeProto &node) = 0; ///< which lives as long as the flattening
  virtual void initializer(const std::string &name) = 0;
  virtual const HostTensor *value(const std::string &name) = 0; ///< null: not known when compiling
  virtual std::optional<std::vector<int64_t>> shape(const std::string &name) = 0;
};

/// What a name stands for: a tensor, the tensors of a sequence, or an optional that is empty.
struct Bound {
  enum Kind { Tensor, Sequence, Nothing } kind;
  std::vector<std::string> names; ///< of the flat graph
};

/// Names of one body, and of what it stands in.
struct Scope {
  const Scope *outer;
  std::map<std::string, Bound> names = {};
};

/// A node that is taken apart, and where.
struct Structure {
  const onnx::NodeProto &node;
  Scope &scope;

  bool has(int input) const { return input < node.input_size() && !node.input(input).empty(); }
  /// Null where the attribute is absent or no graph.
  const onnx::GraphProto *graph(const char *attribute) const;
};

/// One value an output, or why the node stays what it is.
using Outputs = Result<std::vector<Bound>>;

/// Takes control flow and sequences apart while their conditions, trip counts and lengths are known, so that nodes of
/// plain tensors are left.
class Flattening {
public:
  /// Changes `file`: its nodes become the flat ones, initializers of bodies become the graph's. What cannot be taken
  /// apart stays, with the reason in `refused` under its first output.
  Flattening(OnnxFile &file, FlatImport &import, const Limits &limits, std::map<std::string, std::string> &refused);
  /// An error where data of a body have another size than their shape says, or one of the values `trained`, which keep
  /// their names, is no tensor.
  Status run(const std::vector<std::string> &trained);

  // For the ops that are taken apart.
  int64_t opset() const { return file.opset(); }
  /// What an input is bound to; an error where it is missing or nothing makes it.
  Result<Bound> input(const Structure &structure, int input) const;
  /// Input `input` as one tensor, several, or a known number; `what` begins a message.
  Result<std::string> tensor(const Structure &structure, int input) const;
  Result<std::vector<std::string>> sequence(const Structure &structure, int input) const;
  Result<int64_t> number(const std::string &name, const std::string &what);
  Result<std::vector<int64_t>> shape(const std::string &name, const std::string &what);
  const HostTensor *value(const std::string &name) { return import.value(name); }
  /// Whether the limits leave room for so many trips through a body; an error before the first one is taken.
  Status checkTrips(int64_t trips, const onnx::GraphProto &body) const;
  /// The nodes of a body, its inputs bound to `inputs`: what its outputs are.
  Outputs instantiate(const onnx::GraphProto &body, const std::vector<Bound> &inputs, Scope &outer);
  /// A new constant of integers or, of element type BOOL, a truth value.
  Result<std::string> constant(const std::string &name, const HostTensor &value, int32_t elementType);
  /// A new node with one output, whose name begins as `name`.
  Result<std::string> add(const char *op, const std::vector<std::string> &inputs, const std::string &name,
                          const std::vector<std::pair<const char *, int64_t>> &attributes = {});
  /// x with a dimension of extent 1 at `axis` more (Unsqueeze) or less (Squeeze).
  Result<std::string> addView(const char *op, const std::string &x, int64_t axis, const std::string &name);
  /// Tensors one after the other in a new dimension `axis`.
  Result<std::string> stack(const std::vector<std::string> &parts, int64_t axis, const std::string &name);

private:
  void takeNames();
  std::string fresh(const std::string &name);
  Status visit(const onnx::NodeProto &node, Scope &scope);
  /// The node under the names of the flat graph; `reason`, if there is one, is why it cannot be taken apart.
  Status copy(const onnx::NodeProto &node, Scope &scope, std::string reason);
  Status bindInitializers(const onnx::GraphProto &body, Scope &scope);
  /// `isAdded`: unrolling made it, so that it counts.
  Status append(onnx::NodeProto node, bool isAdded);
  /// Counts what a body is given and gives, which is copied by name; an error beyond the limit.
  Status countPassed(const onnx::GraphProto &body, const std::vector<Bound> &inputs);
  /// Appends a node without outputs under a fresh name, which its one output gets, too.
  Result<std::string> emit(onnx::NodeProto node, const std::string &name);
  bool isExceeded() const;
  Status bindOutput(const std::string &name, bool isTrained);
  const Bound *find(const Scope &scope, const std::string &name) const;

  OnnxFile &file;
  FlatImport &import;
  const Limits &limits;
  std::map<std::string, std::string> &refused;
  Scope main{nullptr};
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  std::unordered_map<std::string, int64_t> taken; ///< names, and how many began as they do
  /// Of each body, the names that its initializers have in the flat graph: those of a loop are the same every trip.
  std::map<const onnx::GraphProto *, std::map<std::string, Bound>> initializers;
  int depth = 0;                 ///< of bodies around the current node
  int64_t copied = 0, bytes = 0; ///< nodes that unrolling made, and their bytes
  int64_t passed = 0;            ///< names of values that went into bodies and came out
};

using TakeApart = Outputs (*)(Flattening &, const Structure &);
using TakeAparts = std::map<std::string, TakeApart>;
void addControlFlow(TakeAparts &table);
void addSequences(TakeAparts &table);

inline Bound tensorBound(std::string name) { return {Bound::Tensor, {std::move(name)}}; }

} // namespace sluice

#endif
