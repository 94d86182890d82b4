// SPDX-License-Identifier: Apache-2.0
// What the importer of one op type sees: the node, its inputs as MLIR values or known constants, a place for results
// and for one error. Importers return failure() after node.error(), and hand on null values and ops, which have set the
// error already.
#ifndef SLUICE_FRONTEND_NODE_IMPORT_H
#define SLUICE_FRONTEND_NODE_IMPORT_H

#include "frontend/Attributes.h"
#include "frontend/OnnxGraph.h"
#include "frontend/RandomDraws.h"
#include "frontend/Variables.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace sluice {

/// Uniform random numbers on their way to a mask (RandomDraws), or, once these were compared, a mask of 0 and `value`.
/// It becomes no tensor of the step as long as it only drops what it multiplies (OnnxRandom.cpp).
struct RandomDraw {
  std::vector<int64_t> shape;
  int64_t key;                ///< of all dropouts by this draw
  std::optional<double> keep; ///< probability of `value`, once compared
  double value = 1;
  std::optional<double> added{}; ///< a number, to be rounded down, which compares as well
  bool isRounded = false;        ///< it was, so that `value` need not be 1 / keep
  bool isWritten = false;        ///< the shape is written in the file, rather than an activation's
};

/// What the importers of one function share.
struct FunctionImport {
  const OnnxFile &file;
  const OnnxGraph &graph;
  const TrainingSpec &spec;
  Variables &variables;
  mlir::OpBuilder builder;
  bool training;           ///< @step, else @evaluate
  RandomDraws randomDraws; ///< as exports find them

  llvm::StringMap<mlir::Value> values = {};         ///< activations
  llvm::StringMap<Source> sources = {};             ///< tensors that become variables when an op reads them
  llvm::StringMap<HostTensor> hosts = {};           ///< folded values
  std::map<std::string, std::string> computed = {}; ///< what was folded, as text -> its result
  llvm::StringMap<std::string> repeated = {};       ///< results that are equal to an earlier one -> that one
  llvm::StringMap<HostTensor> copies = {};          ///< small tensors of the file, copied when first asked for
  llvm::StringMap<mlir::Value> reads = {};          ///< train.read per variable
  llvm::StringSet<> integral = {}; ///< float32 activations that are integers or truth values in the model
  llvm::DenseMap<mlir::Value, mlir::Value> numbers{}; ///< int64 activations as float32
  llvm::StringMap<RandomDraw> draws = {};
  int64_t dropouts = 0;           ///< keys given so far
  int64_t constantBytes = 0;      ///< of folded values
  std::string error = {};         ///< of the current node, the first one wins
  llvm::StringSet<> assumed = {}; ///< results of refused nodes, of which only the type is known
  llvm::StringSet<> unknown = {}; ///< of which not even that is, and what depends on those
  bool needsAssumed = false;      ///< the current node asked for the value of an assumed one

  /// The name under which a value is known: that of an earlier one that was computed in the same way, or its own.
  const std::string &known(const std::string &name) const {
    auto found = repeated.find(name);
    return found == repeated.end() ? name : found->second;
  }
};

/// What the importer of one node reads and writes. Operands are asked for by their index among the node's inputs, an
/// absent one is no error before it is read. The first error is kept in FunctionImport::error; whatever returned null
/// or failure has set it, so that importers only pass it on.
class NodeImport {
public:
  NodeImport(FunctionImport &function, const onnx::NodeProto &node);

  const Attributes attributes;
  const int64_t opset;
  bool training() const { return function.training; }
  const TrainingSpec &spec() const { return function.spec; }
  const OnnxGraph &graph() const { return function.graph; }
  mlir::Location loc() const { return location; }
  mlir::OpBuilder &builder() { return function.builder; }
  const onnx::NodeProto &proto() const { return node; }
  FunctionImport &shared() { return function; }

  bool has(int input) const { return input < node.input_size() && !node.input(input).empty(); }
  int inputs() const { return node.input_size(); }
  /// Input as a tensor of float32: an activation, or the read of a variable; integers and truth values that are data
  /// take part in arithmetic as numbers. Null after an error.
  mlir::Value tensor(int input, Use use = {});
  /// The same for ops that only move elements: integers that are data stay int64.
  mlir::Value moved(int input);
  /// Integers that an input of the model brings, maybe after views, int64; null without an error for others. Programs
  /// check their values by the op that indexes with them.
  mlir::Value integerData(int input);
  /// The same, a constant with values in [0, limit) once negative ones are counted from the end, or integers that the
  /// graph computes. Null after an error.
  mlir::Value ids(int input, int64_t limit);
  /// Computed numbers as int64 that kernels index with; `what` they are, in the error where there are more than `limit`
  /// places than float32 can tell apart. Null after an error.
  mlir::Value idsOf(mlir::Value numbers, int64_t limit, const std::string &what);
  /// Notes for programs that ids must lie in [0, limit), or be `ignored`, where inputs bring them, however moved.
  void boundIds(mlir::Value ids, int64_t limit, std::optional<int64_t> ignored = {});
  /// Whether the model says that an input consists of integers or truth values.
  bool isIntegral(int input);
  /// Symbol of a state variable (running statistics); null after an error.
  mlir::FlatSymbolRefAttr state(int input, Use::Kind kind);
  /// A running statistic as a tensor.
  mlir::Value read(mlir::FlatSymbolRefAttr variable, mlir::RankedTensorType type);
  /// From here on the variable holds `value`.
  void changed(mlir::FlatSymbolRefAttr variable, mlir::Value value);
  /// Value known at compile time, or null without an error. Float initializers count.
  const HostTensor *known(int input);
  /// The same without float initializers: those may be parameters.
  const HostTensor *folded(int input);
  /// The same as known, as an error when it is not known.
  const HostTensor *constant(int input, const char *what);
  /// Axes or other integers that an attribute holds in early opsets and input `input` later; nothing when both are
  /// absent.
  std::optional<std::vector<int64_t>> integers(const char *attribute, int input);

  /// The tensor that is no activation after an input; null when there is none.
  const Source *source(int input);

  /// Gives the output its value; failure for null, whose error is noted by whoever made it. Outputs that the node does
  /// not have are passed over.
  mlir::LogicalResult result(mlir::Value value, int output = 0);
  /// The first output is a value known at compile time.
  mlir::LogicalResult fold(HostTensor value);
  /// The input that an export puts in place of this product by a random mask; -1 for other nodes.
  int droppedInput() const { return function.randomDraws.droppedInput(node); }
  /// Whether a live node reads the output.
  bool used(int output) const { return output < node.output_size() && !node.output(output).empty(); }
  /// Notes the error unless there is one already, and gives failure.
  mlir::LogicalResult error(const std::string &message);
  /// `axis` counted from the front; -1 after an error.
  int64_t axis(int64_t axis, int64_t rank);

  /// Makes an op whose result types are inferred. Null after an error, of operands that could not be made, too.
  template <typename Op, typename... Args> Op make(Args &&...args) {
    return makeWith<Op>(resultsOf<Op>(), std::forward<Args>(args)...);
  }
  /// The same of an op that has as many results as its attributes say.
  template <typename Op, typename... Args> Op makeWith(unsigned results, Args &&...args) {
    if (!function.error.empty())
      return Op();
    llvm::SmallVector<mlir::Type> placeholders(results, function.builder.getF32Type());
    auto op = Op::create(function.builder, location, mlir::TypeRange(placeholders), std::forward<Args>(args)...);
    return finish(op) ? op : Op();
  }
  /// Makes an op whose result has a type that its operands do not say. Null after an error.
  template <typename Op, typename... Args> mlir::Value makeAs(llvm::ArrayRef<int64_t> shape, Args &&...args) {
    if (!function.error.empty())
      return {};
    auto type = mlir::RankedTensorType::get(shape, function.builder.getF32Type());
    auto op = Op::create(function.builder, location, type, std::forward<Args>(args)...);
    return finish(op) ? folded(op) : mlir::Value();
  }
  /// What an op with one result folds to, without the op then; else its result. Null for null.
  mlir::Value folded(mlir::Operation *op);
  /// x in a shape of as many elements; any other is an error of the node. Null for null.
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  /// An operand that spans several dimensions of an image as an image itself: layouts are those of rank 4.
  mlir::Value asImageOperand(mlir::Value x, int64_t rank);
  static llvm::APFloat f32(double number) { return llvm::APFloat(static_cast<float>(number)); }
  /// A constant, equal everywhere; `purpose` names it after the node's output.
  mlir::Value filled(std::vector<int64_t> shape, double number, const std::string &purpose);
  mlir::Value scalar(double number, const std::string &purpose) { return filled({}, number, purpose); }
  /// A constant with a value for each element.
  mlir::Value table(HostTensor values, const std::string &purpose);
  /// The same of int64, which kernels index with: the caller has checked the values.
  mlir::Value indices(HostTensor values, const std::string &purpose);

private:
  template <typename Op> static constexpr unsigned resultsOf() {
    return Op::template hasTrait<mlir::OpTrait::OneResult>()           ? 1
           : Op::template hasTrait<mlir::OpTrait::NResults<2>::Impl>() ? 2
                                                                       : 3;
  }
  /// Infers the result types of a new op and verifies it; erases it when that fails.
  bool finish(mlir::Operation *op);
  /// Ranks, extents and sizes within the limits; every op is made after this check.
  mlir::LogicalResult checkSize(mlir::RankedTensorType type, const std::string &what);
  mlir::LogicalResult countConstant(const HostTensor &value);
  /// A constant that the model does not have, without its value; `purpose` names it after the node's output.
  Source inventedSource(const std::string &purpose, std::vector<int64_t> shape, int32_t elementType) const;
  train::VariableOp variableOf(const Source &source, const Use &use);
  mlir::Value readSource(const Source &source, const Use &use);
  mlir::Value readNumbers(const Source &source, int input, const Use &use);
  std::string user() const;

  FunctionImport &function;
  const onnx::NodeProto &node;
  mlir::Location location;
};

using NodeImporter = mlir::LogicalResult (*)(NodeImport &);
using NodeImporters = std::map<std::string, NodeImporter>;

/// Each family adds its op types.
void addConvolutions(NodeImporters &table);
void addPools(NodeImporters &table);
void addReductions(NodeImporters &table);
void addNormalizations(NodeImporters &table);
void addGroupNormalizations(NodeImporters &table);
void addProducts(NodeImporters &table);
void addEinsum(NodeImporters &table);
void addElementwise(NodeImporters &table);
void addViews(NodeImporters &table);
void addJoins(NodeImporters &table);
void addGathers(NodeImporters &table);
void addScatters(NodeImporters &table);
void addPaddings(NodeImporters &table);
void addResizes(NodeImporters &table);
void addSelections(NodeImporters &table);
void addGridSamples(NodeImporters &table);
void addLosses(NodeImporters &table);
void addLogic(NodeImporters &table);
void addRandom(NodeImporters &table);
void addQuantization(NodeImporters &table);
void addFourier(NodeImporters &table);
void addRecurrences(NodeImporters &table);
void addSequenceOrders(NodeImporters &table);
const NodeImporters &nodeImporters();

/// Writes down whether the node's results are integers or truth values in the model, which tells what casts and
/// divisions mean.
void noteIntegral(NodeImport &node);

/// An op that compares, converts, scales or multiplies by a draw; nothing where no input is a draw.
std::optional<mlir::LogicalResult> importOfDraw(NodeImport &node);

inline mlir::RankedTensorType typeOf(mlir::Value value) { return mlir::cast<mlir::RankedTensorType>(value.getType()); }
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) { return typeOf(value).getShape(); }
/// "node 'conv1' (Conv, opset 17)", as messages name a node.
std::string describe(const onnx::NodeProto &node, int64_t opset);

} // namespace sluice

#endif
