// SPDX-License-Identifier: Apache-2.0
// The walk over the graph, once for @step and once for @evaluate: constants are folded as they come, op types are
// looked up in the table of importers, the loss goes on top. Shapes are those of the MLIR types, so no separate shape
// inference runs.
#include "frontend/OnnxImport.h"
#include "frontend/AdapterInsertion.h"
#include "frontend/Adapters.h"
#include "frontend/AssumedResults.h"
#include "frontend/BoundInputs.h"
#include "frontend/ConstantFolding.h"
#include "frontend/ElementTypes.h"
#include "frontend/Flattening.h"
#include "frontend/FrozenForms.h"
#include "frontend/ImportNode.h"
#include "frontend/ImportRemarks.h"
#include "frontend/ImportedOps.h"
#include "frontend/LossAttachment.h"
#include "frontend/Refusals.h"
#include "frontend/RoleReport.h"
#include "frontend/SpecAttributes.h"
#include "frontend/TiedNames.h"
#include "frontend/Turns.h"
#include "ir/TensorName.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace sluice {

bool isImportedOp(const std::string &opType) {
  return nodeImporters().count(opType) || isFoldable(opType) || isStructure(opType) || opType == "Constant" ||
         opType == "ConstantOfShape" || opType == "Shape" || opType == "Size";
}

namespace {

/// Reasons why nodes that stand for others could not be taken apart, by their first outputs.
using Unflattened = std::map<std::string, std::string>;

/// Why a node is refused.
std::string reasonOf(const onnx::NodeProto &proto, const FunctionImport &state) {
  if (isStructure(proto.op_type()) && !state.error.empty())
    return state.error;
  // An input that nothing made explains more than the type error it leads to.
  for (const std::string &input : proto.input())
    if (!input.empty() && !state.values.count(input) && !state.sources.count(state.known(input)) &&
        !state.hosts.count(state.known(input)) && !state.draws.count(input))
      return "reads '" + input + "', an optional output that is not supported";
  return state.error.empty() ? "cannot be imported" : state.error;
}

void removeDead(func::FuncOp function) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// What a step and its evaluation are imported from: all that is trained, or what one turn computes.
struct Imported {
  TrainingSpec spec;
  OnnxGraph graph;
  std::string step = "step", evaluate = "evaluate"; ///< symbols
};

/// One import: the module, and what all of its functions share.
class GraphImport {
public:
  GraphImport(MLIRContext &context, const OnnxFile &file, const TrainingSpec &spec, const HandRoles &hand,
              const OnnxGraph &graph, const Unflattened &unflattened)
      : file(file), spec(spec), hand(hand), graph(graph), unflattened(unflattened), builder(&context),
        module(ModuleOp::create(builder, NameLoc::get(builder.getStringAttr(file.path())))),
        variables(*module, spec, hand, graph.constantsAreWeights) {}

  Result<OwningOpRef<ModuleOp>> run(ImportReport &report) {
    setAttributes(*module, spec, graph);
    llvm::append_range(report.remarks, graph.remarks);
    if (Status imported = spec.turns.empty() ? importBoth({spec, graph}, report) : importTurns(report); !imported)
      return imported.takeError();
    variables.removeUnused();
    noteAdapters(*module);
    if (Status known = checkMagnitudes(*module); !known)
      return known.takeError();
    variables.setTied(tiedNames(file.model().graph(), graph));
    if (Status roles = reportRoles(*module, graph, variables, hand, report.remarks); !roles)
      return roles.takeError();
    if (Status noted = noteTurns(*module, spec, hand, turns, report.remarks); !noted)
      return noted.takeError();
    if (spec.frozen)
      if (Status given = giveForms(*module, variables.frozen(), *spec.frozen, report.remarks); !given)
        return given.takeError();
    reportStored(*module, file, report.remarks);
    std::vector<std::string> predicted;
    for (train::OutputAttr output : train::outputsOf(*module))
      if (output.getKept() >= 0)
        predicted.push_back(output.getName().str());
    reportLeftOut(file.model().graph(), graph, predicted, spec, report.remarks);
    if (!graph.batchNorms.remark.empty())
      report.remarks.push_back(graph.batchNorms.remark);
    remarkOnTraining(*module, spec, report.remarks);
    if (failed(verify(*module)))
      return Error{"the imported module is not valid: " + diagnostic};
    return std::move(module);
  }

  /// Takes the file's control flow apart, with what an import of @step knows. Refusals are for the import of what
  /// comes of it.
  Status flatten(OnnxFile &changed, Unflattened &refused);

  /// What reads results of which nothing is known is left out: the type of a value tells whether a node is supported.
  void importOrRefuse(const onnx::NodeProto &proto, FunctionImport &state, Refusals &refusals) {
    if (llvm::any_of(proto.input(), [&](const std::string &input) { return state.unknown.contains(input); })) {
      refusals.skip();
      state.unknown.insert(proto.output().begin(), proto.output().end());
      return;
    }
    NodeImport node(state, proto);
    auto whole = unflattened.find(firstOutput(proto));
    if (whole != unflattened.end())
      (void)node.error(whole->second);
    else if (succeeded(importNode(node)) && state.error.empty())
      return;
    if (state.needsAssumed)
      refusals.skip();
    else
      refusals.add(proto, reasonOf(proto, state));
    state.error.clear();
    state.needsAssumed = false;
    assumeResults(node);
  }

  /// Makes a tensor of the file known to the function, once.
  void addSource(const std::string &name, FunctionImport &state) const {
    const FileTensor *tensor = file.tensor(name);
    if (!tensor || state.values.count(name))
      return;
    Source &source = state.sources[name] = initializerSource(name, *tensor, graph.roles.held);
    // Conditions and trip counts may share a number with what is computed.
    source.constantNode |= flattens && elementCount(tensor->shape) == 1;
  }

private:
  Status importBoth(const Imported &from, ImportReport &report) {
    for (bool training : {true, false})
      if (Status imported = importFunction(from, training, report.notes); !imported)
        return imported;
    return Success{};
  }

  /// A step and an evaluation for each turn, the last one's under the names of a program without turns.
  Status importTurns(ImportReport &report) {
    for (const TurnRequest &turn : spec.turns) {
      const bool isLast = &turn == &spec.turns.back();
      const TrainingSpec own = specOfTurn(spec, turn);
      const std::string ending = isLast ? "" : "." + turn.name;
      Imported from{own, graph.ofTurn(file, own), "step" + ending, "evaluate" + ending};
      if (Status imported = importBoth(from, report); !imported)
        return Error{imported.error() + " (turn '" + turn.name + "')"};
      turns.push_back({from.step, from.evaluate, takeOutputAttributes(*module, /*leave=*/isLast)});
    }
    return shareArguments(*module);
  }

  /// Arguments are inputs in the file's order, batch first; targets are added when losses are attached.
  Result<func::FuncOp> declare(const std::string &symbol) {
    SmallVector<Type> types;
    SmallVector<std::string> names;
    for (const GraphInput &input : graph.inputs) {
      if (!isInteger(input) && input.elementType != onnx::TensorProto::FLOAT)
        return Error{"input '" + input.name + "' has element type " + elementTypeName(input.elementType) +
                     "; supported are float32, int64, int32, uint8 and bool"};
      Type element = isInteger(input) ? Type(builder.getI64Type()) : Type(builder.getF32Type());
      types.push_back(RankedTensorType::get(input.programShape(), element));
      names.push_back(input.name);
    }
    builder.setInsertionPointToEnd(module->getBody());
    auto function = func::FuncOp::create(builder, module->getLoc(), symbol, builder.getFunctionType(types, {}));
    Block *block = function.addEntryBlock();
    for (auto [argument, name] : llvm::zip(block->getArguments(), names)) {
      function.setArgAttr(argument.getArgNumber(), "train.name", builder.getStringAttr(name));
      argument.setLoc(NameLoc::get(builder.getStringAttr(name)));
    }
    return function;
  }

  /// A function with its arguments and the tensors of the file.
  FunctionImport begin(func::FuncOp function, const OnnxGraph &graph, const TrainingSpec &spec, bool training) {
    OpBuilder body = OpBuilder::atBlockEnd(&function.getBody().front());
    FunctionImport state{file, graph, spec, variables, body, training, RandomDraws(file.model().graph())};
    for (auto [input, argument] : llvm::zip(graph.inputs, function.getArguments()))
      bindInput(state, input, argument);
    for (const auto &initializer : file.model().graph().initializer())
      addSource(initializer.name(), state);
    return state;
  }

  /// After a refused node the rest is imported as if its results were those that ONNX's own inference gives, so that
  /// one run tells all that is not supported.
  Status importFunction(const Imported &from, bool training, std::vector<std::string> &notes) {
    const OnnxGraph &graph = from.graph;
    Result<func::FuncOp> declared = declare(training ? from.step : from.evaluate);
    if (!declared)
      return declared.takeError();
    func::FuncOp function = *declared;
    FunctionImport state = begin(function, graph, from.spec, training);
    ScopedDiagnosticHandler handler(builder.getContext(), [&](Diagnostic &message) {
      std::string &text = state.error.empty() ? state.error : diagnostic;
      text = message.str();
      return success();
    });
    Refusals refusals(file.opset(), graph.nodes.size());
    for (const onnx::NodeProto *proto : graph.nodes)
      importOrRefuse(*proto, state, refusals);
    if (!refusals.empty()) {
      notes = refusals.notes();
      for (const std::string &other : graph.otherOutputs) // as sklearn's probabilities before their label
        if (state.values.count(other) && !state.assumed.contains(other)) {
          notes.push_back("output '" + other + "' does not need these nodes; --output=" + other + " trains it");
          break;
        }
      return Error{refusals.message()};
    }
    if (!training) {
      Refusals unused(file.opset(), 0); // an output that is not supported is not predicted
      for (const onnx::NodeProto *proto : graph.otherNodes)
        importOrRefuse(*proto, state, unused);
    }
    if (Status attached = attachLoss(state, function); !attached)
      return attached;
    removeDead(function);
    return Success{};
  }

  const OnnxFile &file;
  const TrainingSpec &spec;
  const HandRoles &hand;
  const OnnxGraph &graph;
  const Unflattened &unflattened;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
  Variables variables;
  std::vector<ImportedTurn> turns;
  bool flattens = false; ///< only values that are known when compiling are asked for
  std::string diagnostic;
};

/// Values of @step as a flattening asks for them.
class StepValues : public FlatImport {
public:
  StepValues(GraphImport &import, FunctionImport &state)
      : import(import), state(state), refusals(state.file.opset(), 0) {}
  void node(const onnx::NodeProto &node) override { import.importOrRefuse(node, state, refusals); }
  void initializer(const std::string &name) override { import.addSource(name, state); }
  const HostTensor *value(const std::string &name) override {
    const onnx::NodeProto reader = readerOf(name);
    return NodeImport(state, reader).known(0);
  }
  /// Of a value as the import has it so far, or of a tensor of the file, which a node has to ask for.
  std::optional<std::vector<int64_t>> shape(const std::string &name) override {
    if (auto value = state.values.find(name); value != state.values.end())
      return shapeOf(value->second).vec();
    const onnx::NodeProto reader = readerOf(name);
    const Source *source = NodeImport(state, reader).source(0);
    return source ? std::optional(source->shape) : std::nullopt;
  }

private:
  static onnx::NodeProto readerOf(const std::string &name) {
    onnx::NodeProto reader;
    reader.add_input(name);
    return reader;
  }

  GraphImport &import;
  FunctionImport &state;
  Refusals refusals;
};

std::vector<std::string> outputNames(const OnnxGraph &graph) {
  std::vector<std::string> names;
  for (const GraphOutput &output : graph.outputs)
    names.push_back(output.name);
  return names;
}

/// By a module of its own, which is thrown away: only values and shapes of it are asked for. Errors are left to the
/// import of the flat graph.
Status GraphImport::flatten(OnnxFile &changed, Unflattened &refused) {
  Result<func::FuncOp> declared = declare("step");
  if (!declared)
    return declared.takeError();
  flattens = true;
  FunctionImport state = begin(*declared, graph, spec, /*training=*/true);
  ScopedDiagnosticHandler handler(builder.getContext(), [](Diagnostic &) { return success(); });
  StepValues values(*this, state);
  return Flattening(changed, values, spec.limits, refused).run(outputNames(graph));
}

/// `replaced`: the batch that the file fixes where --batch says another, else 0; for errors, too.
Result<OwningOpRef<ModuleOp>> importWhole(MLIRContext &context, OnnxFile &file, TrainingSpec spec, ImportReport &report,
                                          int64_t &replaced) {
  auto located = [&](Error error) { return Error{file.path() + ": " + error.message}; };
  Result<HandRoles> hand = HandRoles::of(spec);
  if (!hand)
    return hand.takeError();
  file.restore();
  if (Status named = nameOutputs(file, spec); !named)
    return located(named.takeError());
  Result<OnnxGraph> graph = OnnxGraph::build(file, spec);
  if (!graph)
    return located(graph.takeError());
  replaced = graph->replacedBatch;
  Unflattened unflattened = file.refused();
  if (hasStructure(file.model().graph())) {
    Status flat = GraphImport(context, file, spec, *hand, *graph, {}).flatten(file, unflattened);
    graph = flat ? OnnxGraph::build(file, spec) : Result<OnnxGraph>(flat.takeError());
  }
  if (graph && spec.adapter) { // of the nodes that loops have become, too
    Result<std::string> remark = insertAdapters(file, spec);
    if (!remark)
      return located(remark.takeError());
    report.remarks.push_back(std::move(*remark));
    hand = HandRoles::of(spec);
    graph = OnnxGraph::build(file, spec);
  }
  if (!graph)
    return located(graph.takeError());
  hand->tied = graph->tied;
  GraphImport import(context, file, spec, *hand, *graph, unflattened);
  auto module = import.run(report);
  if (!module)
    return located(module.takeError());
  return module;
}

} // namespace

Result<OwningOpRef<ModuleOp>> importOnnx(MLIRContext &context, OnnxFile &file, const TrainingSpec &spec,
                                         ImportReport *report) {
  context.loadDialect<train::TrainDialect, func::FuncDialect>();
  ImportReport unread;
  int64_t fixed = 0;
  auto module = importWhole(context, file, spec, report ? *report : unread, fixed);
  if (module || fixed == 0)
    return module;
  // Nodes may hold the file's batch in ways that --batch cannot replace. Whether that is why, the file itself tells.
  TrainingSpec asExported = spec;
  asExported.batch.reset();
  ImportReport ignored;
  int64_t none = 0;
  if (!importWhole(context, file, asExported, ignored, none))
    return module;
  return Error{module.error() + "; the file fixes the batch at " + std::to_string(fixed) +
               ", and its nodes hold that number: export it with an open batch (dynamic_shapes, dynamic_axes of " +
               "PyTorch's older exporter), or leave out --batch=" + std::to_string(*spec.batch)};
}

} // namespace sluice
