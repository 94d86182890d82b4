// SPDX-License-Identifier: Apache-2.0
// build-decode:
//  1. from the scores of the largest evaluation back, op by op, find what each value has to be for one token of each
//  text (DecodeAxes.h, DecodeAttention.h); where an op mixes tokens in a way that no cache stands for, stop with a
//  remark;
//  2. make @decode of it, in program order, with variables for the places and the caches;
//  3. let all evaluations store their keys and values, and inputs that masks read for all tokens.
#include "passes/DecodeAnalysis.h"
#include "passes/Passes.h"

#include "ir/Buckets.h"
#include "ir/Cache.h"

namespace sluice {
#define GEN_PASS_DEF_BUILDDECODE
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

Value reshaped(OpBuilder &b, Location loc, Value value, ArrayRef<int64_t> shape) {
  if (typeOf(value).getShape() == shape)
    return value;
  return ReshapeOp::create(b, loc, RankedTensorType::get(shape, typeOf(value).getElementType()), value);
}

StringAttr nameOf(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "train.name");
}

/// The shape of a value whose rows are needed, with dimensions of one in front: [1 or texts,..].
SmallVector<int64_t> lifted(Value value, const Need &need) {
  SmallVector<int64_t> shape(typeOf(value).getShape());
  shape.insert(shape.begin(), need.rank - shape.size(), 1);
  return shape;
}

/// Steps 2 and 3.
class DecodeBuilder {
public:
  DecodeBuilder(ModuleOp module, const DecodeAnalysis &analysis)
      : module(module), a(analysis), e(analysis.extents), symbols(module), b(module.getContext()) {}

  /// The function.
  func::FuncOp build() {
    makeFunction();
    for (Operation &op : a.evaluate.getBody().front().without_terminator())
      if (op.getNumResults() > 0)
        for (const Need::Kind kind : {Need::Token, Need::Whole, Need::Row}) // rows may be taken of the whole
          for (const Need &need : a.needs.lookup(op.getResult(0)))
            if (need.kind == kind)
              note({op.getResult(0), need}, make(&op, need));
    func::ReturnOp::create(b, function.getLoc(), made({a.scores, {Need::Token, {{1, 1, 1}, {0, 1, 1}}}}));
    function.setType(b.getFunctionType(function.getBody().getArgumentTypes(),
                                       function.getBody().front().getTerminator()->getOperandTypes()));
    return function;
  }

  /// Of an evaluation of any shape, whose attentions are those of the largest in their order.
  void storeIn(func::FuncOp evaluate, ArrayRef<DecodeAttention *> attentions) {
    for (auto [attention, variables] : llvm::zip_equal(attentions, caches))
      attention->storeAll(variables);
    OpBuilder front(&evaluate.getBody().front(), evaluate.getBody().front().begin());
    for (BlockArgument argument : evaluate.getArguments())
      if (VariableOp variable = histories.lookup(nameOf(argument))) {
        const ArrayRef<int64_t> shape = typeOf(argument).getShape();
        const Location loc = argument.getLoc();
        const Value cache = ReadOp::create(front, loc, variable.getType(), variable.getSymName());
        const Value rows = reshaped(front, loc, argument, {shape[0], 1, shape[1], 1});
        CacheRowsOp::create(front, loc, cache.getType(), rows, Value(), cache, ViewAttr());
      }
  }

private:
  void note(const NeededValue &needed, Value value) { all[needed.value].push_back({needed.need, value}); }
  Value made(const NeededValue &needed) const {
    for (const auto &[need, value] : all.lookup(needed.value))
      if (need == needed.need)
        return value;
    llvm_unreachable("the analysis asks for all that is read");
  }

  VariableOp addVariable(Location loc, const std::string &wanted, RankedTensorType type) {
    std::string name = wanted;
    for (int n = 2; symbols.lookup(name); ++n)
      name = wanted + "_" + std::to_string(n);
    OpBuilder front(&a.evaluate->getBlock()->front());
    auto variable = VariableOp::create(front, loc, name, Role::Gradient, Init::Zero, type, ElementsAttr(), 0, 0,
                                       StringAttr(), StringAttr());
    variable->setAttr(cacheAttribute, b.getUnitAttr());
    symbols.insert(variable);
    return variable;
  }

  void makeFunction() {
    const Location loc = a.evaluate.getLoc();
    b.setInsertionPointToEnd(module.getBody());
    function = func::FuncOp::create(b, loc, "decode", b.getFunctionType({}, {}));
    symbols.insert(function);
    Block *block = function.addEntryBlock();
    b.setInsertionPointToStart(block);
    VariableOp at = addVariable(loc, placesName.str(), RankedTensorType::get({e.texts}, b.getI64Type()));
    places = ReadOp::create(b, loc, at.getType(), at.getSymName());
    SmallVector<BlockArgument> taken;
    for (BlockArgument argument : a.evaluate.getArguments())
      if (a.needs.count(argument)) {
        const Type token = RankedTensorType::get({e.texts, 1}, typeOf(argument).getElementType());
        take(argument,
             block->addArgument(e.dependent.contains(argument) ? token : argument.getType(), argument.getLoc()));
        taken.push_back(argument);
      }
    function.setType(b.getFunctionType(block->getArgumentTypes(), {}));
    for (auto [number, argument] : llvm::enumerate(taken))
      function.setArgAttrs(number, function_interface_impl::getArgAttrs(a.evaluate, argument.getArgNumber()));
  }

  void take(BlockArgument argument, BlockArgument own) {
    for (const Need::Kind kind : {Need::Token, Need::Whole, Need::Row})
      for (const Need &need : a.needs.lookup(argument))
        if (need.kind == kind)
          note({argument, need}, kind == Need::Token              ? own
                                 : kind == Need::Row              ? rowsAt(argument, need)
                                 : e.dependent.contains(argument) ? history(argument, own)
                                                                  : Value(own));
  }

  /// All that the input has brought so far.
  Value history(BlockArgument argument, Value token) {
    const Location loc = argument.getLoc();
    const auto type = RankedTensorType::get({e.texts, 1, e.tokens, 1}, typeOf(argument).getElementType());
    VariableOp variable = addVariable(loc, "cache/" + nameOf(argument).str(), type);
    histories[nameOf(argument)] = variable;
    const Value cache = ReadOp::create(b, loc, variable.getType(), variable.getSymName());
    const Value rows = reshaped(b, loc, token, {e.texts, 1, 1, 1});
    const Value stored = CacheRowsOp::create(b, loc, type, rows, places, cache, ViewAttr());
    return reshaped(b, loc, stored, {e.texts, e.tokens});
  }

  Value make(Operation *op, const Need &need) {
    const auto found = a.attentions.find(op);
    if (need.kind == Need::Token && found != a.attentions.end())
      return makeAttention(*found->second, op);
    if (need.kind == Need::Row && !passesRows(op, need, e))
      return rowsAt(op->getResult(0), need);
    const NeededOperands needed = neededOperands(op, need, e);
    Operation *clone = b.clone(*op);
    for (auto [number, operand] : llvm::enumerate(needed.values))
      clone->setOperand(number, made(operand));
    setTypes(clone, need);
    return clone->getResult(0);
  }

  Value makeAttention(DecodeAttention &attention, Operation *op) {
    const auto [keys, values] = attention.caches(e.tokens);
    const std::string name = "cache/" + std::to_string(caches.size());
    caches.push_back(
        {addVariable(op->getLoc(), name + "/keys", keys), addVariable(op->getLoc(), name + "/values", values)});
    return attention.build(b, caches.back(), places, [&](const NeededValue &needed) { return made(needed); });
  }

  SmallVector<int64_t> rowShape(Value value, const Need &need) const {
    SmallVector<int64_t> shape = lifted(value, need);
    shape[0] = e.texts;
    shape[need.dim] = 1;
    return shape;
  }
  /// Of each text the row at its place, as rows of a table.
  Value rowsAt(Value value, const Need &need) {
    const Location loc = value.getLoc();
    const SmallVector<int64_t> shape = lifted(value, need);
    const int64_t elements = typeOf(value).getNumElements(), rows = shape[0] * e.tokens;
    Value table = made({value, {Need::Whole}});
    if (llvm::any_of(ArrayRef(shape).slice(1, need.dim - 1), [](int64_t extent) { return extent != 1; })) {
      SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(shape.size())));
      std::rotate(order.begin() + 1, order.begin() + need.dim, order.begin() + need.dim + 1);
      table = TransposeOp::create(b, loc, reshaped(b, loc, table, shape), order);
    }
    table = reshaped(b, loc, table, {rows, elements / rows});
    const Value found = EmbeddingOp::create(b, loc, table, shape[0] == 1 ? places : rowsOfTexts());
    return reshaped(b, loc, found, rowShape(value, need));
  }

  /// Places counted over the rows of all texts, in floats, which hold these numbers.
  Value rowsOfTexts() {
    if (rows)
      return rows;
    const Location loc = function.getLoc();
    const auto floats = RankedTensorType::get({e.texts}, b.getF32Type());
    SmallVector<float> firsts;
    for (int64_t text = 0; text < e.texts; ++text)
      firsts.push_back(static_cast<float>(text * e.tokens));
    VariableOp before = addVariable(loc, "train/first_rows", floats);
    before.setRole(Role::Constant);
    before.setInit(Init::File);
    before.setValueAttr(DenseElementsAttr::get(floats, ArrayRef(firsts)));
    before->removeAttr(cacheAttribute);
    const Value first = ReadOp::create(b, loc, floats, before.getSymName()),
                own = CastOp::create(b, loc, floats, places);
    return rows = CastOp::create(b, loc, places.getType(), AddOp::create(b, loc, own, first));
  }

  void setTypes(Operation *clone, const Need &need) {
    const Value result = clone->getResult(0);
    const auto set = [&](ArrayRef<int64_t> shape) {
      clone->getResult(0).setType(RankedTensorType::get(shape, typeOf(result).getElementType()));
    };
    if (need.kind == Need::Row)
      set(rowShape(result, need));
    if (need.kind != Need::Token)
      return;
    SmallVector<Type> types;
    auto inferred = dyn_cast<InferTypeOpInterface>(clone);
    if (clone->getNumResults() > 1 && inferred &&
        succeeded(inferred.inferReturnTypes(clone->getContext(), clone->getLoc(), clone->getOperands(),
                                            clone->getAttrDictionary(), clone->getPropertiesStorage(),
                                            clone->getRegions(), types)))
      for (auto [own, type] : llvm::zip_equal(clone->getResults(), types))
        own.setType(type);
    else
      set(shapeAt(typeOf(result).getShape(), need.axes.tokens));
  }

  ModuleOp module;
  const DecodeAnalysis &a;
  const TextExtents &e;
  SymbolTable symbols;
  OpBuilder b;
  func::FuncOp function;
  Value places, rows; ///< the latter null until somebody asks
  llvm::DenseMap<Value, SmallVector<std::pair<Need, Value>, 2>> all;
  SmallVector<std::array<VariableOp, 2>> caches; ///< of the attentions, in program order
  llvm::DenseMap<StringAttr, VariableOp> histories;
};

/// The attentions of an evaluation of one shape that stand where `numbers` say among all, with what they are of.
struct BucketAttentions {
  func::FuncOp evaluate;
  std::unique_ptr<TextExtents> extents;
  std::vector<std::unique_ptr<DecodeAttention>> attentions;
};

struct BuildDecode : sluice::impl::BuildDecodeBase<BuildDecode> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const std::vector<Bucket> buckets = bucketsOf(module);
    auto evaluate = module.lookupSymbol<func::FuncOp>(buckets.back().evaluate);
    const std::optional<DecodedScores> scores =
        evaluate && !evaluate.isExternal() ? decodedScores(module, evaluate) : std::nullopt;
    if (!scores || !scores->value.getDefiningOp() || module.lookupSymbol("decode") || module.lookupSymbol(placesName))
      return none(module, "the model has no scores [texts, tokens, words]");
    DecodeAnalysis analysis(evaluate, scores->value);
    if (!analysis.run())
      return none(analysis.culprit, analysis.why);
    std::vector<BucketAttentions> all;
    for (const Bucket &bucket : buckets)
      if (!findAttentions(module, bucket, analysis, all.emplace_back()))
        return none(evaluate, "its attentions differ between shapes");
    DecodeBuilder builder(module, analysis);
    setDecodeStep(module, {builder.build().getSymName().str(), scores->output});
    for (BucketAttentions &each : all) {
      const auto list = llvm::map_to_vector(each.attentions, [](auto &attention) { return attention.get(); });
      builder.storeIn(each.evaluate, list);
    }
    cached += static_cast<unsigned>(analysis.attentions.size());
  }

private:
  void none(Operation *op, const std::string &why) {
    const std::string node = nodeName(op->getLoc());
    const bool names = !isa<ModuleOp, func::FuncOp>(op);
    op->emitRemark() << "no decode step: "
                     << (names ? "'" + op->getName().stripDialect().str() + "' of node '" + node + "' " : std::string())
                     << why << "; --generate computes the whole text for each token";
  }

  static bool findAttentions(ModuleOp module, const Bucket &bucket, const DecodeAnalysis &largest,
                             BucketAttentions &found) {
    found.evaluate = module.lookupSymbol<func::FuncOp>(bucket.evaluate);
    const std::optional<DecodedScores> scores = found.evaluate ? decodedScores(module, found.evaluate) : std::nullopt;
    if (!scores)
      return false;
    found.extents = std::make_unique<TextExtents>(textExtents(found.evaluate, scores->value));
    const SmallVector<AttentionOp> ofLargest = llvm::to_vector(func::FuncOp(largest.evaluate).getOps<AttentionOp>()),
                                   own = llvm::to_vector(found.evaluate.getOps<AttentionOp>());
    if (own.size() != ofLargest.size())
      return false;
    for (auto [theirs, op] : llvm::zip_equal(ofLargest, own)) {
      const auto known = largest.attentions.find(theirs);
      if (known == largest.attentions.end())
        continue;
      found.attentions.push_back(std::make_unique<DecodeAttention>(op, *found.extents));
      const int64_t rows = largest.extents.tokens;
      if (!found.attentions.back()->why().empty() ||
          found.attentions.back()->caches(rows) != known->second->caches(rows))
        return false;
    }
    return true;
  }
};

} // namespace
