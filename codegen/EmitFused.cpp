// SPDX-License-Identifier: Apache-2.0
// Prints the scalar ops of a region as straight-line C++. What has a name, what is read twice, and what a comparison or
// a selection reads is a line of its own; the rest stands where it is read.
#include "codegen/Document.h"
#include "ir/ScalarNames.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <stdexcept>

using namespace mlir;
using namespace sluice;
using namespace sluice::codegen;

namespace {

/// How tightly the outermost operator of an expression binds, least first: a looser one inside a tighter one needs
/// brackets.
enum class Binding { Choice, Sum, Product, Word };

/// Text of C++ for one scalar value.
struct Expression {
  std::string text;
  Binding binding = Binding::Word;
};

/// Prints what values of one region follow from. Names that a body calls are reserved, since parameters may not hide
/// functions. Means of rows are given: what they alone read is not printed.
class Printer {
public:
  Printer(Block &block, ValueRange results, const Names &outer)
      : block(block), results(results.begin(), results.end()),
        names(outer.inner({"arcTangent", "ceilf", "cosine", "element", "errorFunction", "exponential", "floorf",
                           "fmodf", "hyperbolicTangent", "logarithm", "logistic", "randomKey", "rintf", "row", "sine",
                           "sqrtf", "truncf", "uniform"})) {
    needed.insert(results.begin(), results.end());
    for (Operation &op : llvm::reverse(block.without_terminator()))
      if (needed.contains(op.getResult(0)) && !isa<train::RowMeanOp>(op))
        needed.insert(op.operand_begin(), op.operand_end());
    for (auto [i, argument] : llvm::enumerate(block.getArguments()))
      name(argument, i < 26 ? std::string(1, 'a' + i) : "in" + std::to_string(i));
  }

  /// With names for all, or for those alone that are needed.
  std::string parameters(bool all = true) {
    std::string out;
    for (Value argument : block.getArguments())
      out += (out.empty() ? "float" : ", float") + (all || needed.contains(argument) ? " " + of(argument) : "");
    return out;
  }

  /// Values are computed in the order of the block.
  std::string body() {
    std::string out;
    llvm::raw_string_ostream stream(out);
    for (Operation &op : block.without_terminator()) {
      Value result = op.getResult(0);
      if (!needed.contains(result))
        continue;
      Expression value = expression(&op);
      if (standsAlone(result)) {
        stream << "    const float " << name(result, "v" + std::to_string(count)) << " = " << value.text << ";\n";
        continue;
      }
      values[result] = value;
    }
    stream << "    return {{";
    for (auto [i, value] : llvm::enumerate(results))
      stream << (i ? ", " : "") << values[value].text;
    stream << "}};\n";
    return out;
  }

  bool random = false;

private:
  /// What is computed for a selection is computed whichever way it goes: compilers vectorize no loop with a branch.
  static bool standsAlone(Value value) {
    Operation *op = value.getDefiningOp();
    if (isa<arith::ConstantOp, arith::CmpFOp>(op)) // comparisons only selections read
      return false;
    return !train::scalarName(value.getLoc()).empty() || !value.hasOneUse() ||
           isa<arith::SelectOp, arith::CmpFOp, train::YieldOp, train::RowMeanOp>(*value.user_begin());
  }

  /// Names the value, after what its location says if that says anything.
  std::string name(Value value, const std::string &otherwise) {
    const StringRef known = train::scalarName(value.getLoc());
    count += known.empty() && !isa<BlockArgument>(value);
    return values[value].text = names.uniqueValue(known.empty() ? otherwise : camelCase(known));
  }

  /// The value in an expression whose operator binds as tightly.
  std::string within(Binding binding, Value value) {
    const Expression &inner = values[value];
    return inner.binding < binding ? "(" + inner.text + ")" : inner.text;
  }

  std::string of(Value value) { return values[value].text; }

  /// Ordered comparisons alone, which C++'s operators are: those with NaN are false.
  std::string compare(arith::CmpFOp op) {
    const std::string a = of(op.getLhs()), b = of(op.getRhs());
    switch (op.getPredicate()) {
    case arith::CmpFPredicate::OLE:
      return a + " <= " + b;
    case arith::CmpFPredicate::OLT:
      return a + " < " + b;
    case arith::CmpFPredicate::OGE:
      return a + " >= " + b;
    case arith::CmpFPredicate::OGT:
      return a + " > " + b;
    case arith::CmpFPredicate::OEQ:
      return a + " == " + b;
    default:
      throw std::logic_error("codegen cannot print the comparison '" +
                             arith::stringifyCmpFPredicate(op.getPredicate()).str() + "' of a scalar rule");
    }
  }

  static bool isNumber(Value value, double number) {
    auto constant = value.getDefiningOp<arith::ConstantOp>();
    return constant && cast<FloatAttr>(constant.getValue()).getValueAsDouble() == number;
  }
  /// x where the quotient is 1 / (1 + e^(0 - x)), which GPUs have faster instructions for; else null.
  static Value logisticOf(arith::DivFOp quotient) {
    auto sum = quotient.getRhs().getDefiningOp<arith::AddFOp>();
    auto power = sum ? sum.getRhs().getDefiningOp<math::ExpOp>() : math::ExpOp();
    auto negative = power ? power.getOperand().getDefiningOp<arith::SubFOp>() : arith::SubFOp();
    const bool is =
        negative && isNumber(quotient.getLhs(), 1) && isNumber(sum.getLhs(), 1) && isNumber(negative.getLhs(), 0);
    return is ? negative.getRhs() : Value();
  }

  /// The same functions as kernels call, by their names in the runtime: a fused rule must give the bits of the ops that
  /// it replaces, which the compiler's own exp or tanh would not.
  Expression expression(Operation *op) {
    // Operators of one kind are read from the left, as C++ does.
    auto infix = [&](Binding binding, const char *sign) {
      const Binding tighter = static_cast<Binding>(static_cast<int>(binding) + 1);
      return Expression{within(binding, op->getOperand(0)) + sign + within(tighter, op->getOperand(1)), binding};
    };
    auto call = [&](const char *function) {
      return Expression{std::string(function) + "(" + of(op->getOperand(0)) + ")"};
    };
    return llvm::TypeSwitch<Operation *, Expression>(op)
        .Case([&](arith::ConstantOp c) {
          return Expression{floatLiteral(cast<FloatAttr>(c.getValue()).getValueAsDouble())};
        })
        .Case([&](arith::AddFOp) { return infix(Binding::Sum, " + "); })
        .Case([&](arith::SubFOp) { return infix(Binding::Sum, " - "); })
        .Case([&](arith::MulFOp) { return infix(Binding::Product, " * "); })
        .Case([&](arith::DivFOp d) {
          const Value exponent = logisticOf(d);
          return exponent ? Expression{"logistic(" + of(exponent) + ")"} : infix(Binding::Product, " / ");
        })
        .Case([&](arith::CmpFOp c) { return Expression{compare(c)}; })
        .Case([&](arith::SelectOp s) {
          return Expression{of(s.getCondition()) + " ? " + of(s.getTrueValue()) + " : " + of(s.getFalseValue()),
                            Binding::Choice};
        })
        .Case([&](math::SqrtOp) { return call("sqrtf"); })
        .Case([&](math::ExpOp) { return call("exponential"); })
        .Case([&](math::TanhOp) { return call("hyperbolicTangent"); })
        .Case([&](math::LogOp) { return call("logarithm"); })
        .Case([&](math::ErfOp) { return call("errorFunction"); })
        .Case([&](math::SinOp) { return call("sine"); })
        .Case([&](math::CosOp) { return call("cosine"); })
        .Case([&](math::AtanOp) { return call("arcTangent"); })
        .Case([&](math::FloorOp) { return call("floorf"); })
        .Case([&](math::CeilOp) { return call("ceilf"); })
        .Case([&](math::RoundEvenOp) { return call("rintf"); })
        .Case([&](math::TruncOp) { return call("truncf"); })
        .Case([&](arith::RemFOp r) { return Expression{"fmodf(" + of(r.getLhs()) + ", " + of(r.getRhs()) + ")"}; })
        .Case([&](train::UniformOp u) {
          random = true;
          std::string index = "element.index";
          if (u.getFirst() > 0)
            index += " + " + std::to_string(u.getFirst());
          if (u.getGroup() > 1)
            index = (u.getFirst() > 0 ? "(" + index + ")" : index) + " / " + std::to_string(u.getGroup());
          return Expression{"uniform(randomKey(element.seed, " + std::to_string(u.getKey()) + "u, element.step), " +
                            index + ")"};
        })
        .Case([&](train::RowMeanOp m) {
          const auto means = block.getOps<train::RowMeanOp>();
          return Expression{"row.v[" + std::to_string(std::distance(means.begin(), llvm::find(means, m))) + "]"};
        })
        .Default([](Operation *other) -> Expression {
          throw std::logic_error("codegen cannot print the scalar op " + other->getName().getStringRef().str());
        });
  }

  Block &block;
  SmallVector<Value> results;
  llvm::SmallDenseSet<Value> needed;
  llvm::DenseMap<Value, Expression> values;
  Names names;   ///< of scalars: none is what bodies say themselves
  int count = 0; ///< of values without a name
};

/// What means of rows are of, in the order of the means.
SmallVector<Value> meanTerms(Block &block) {
  return llvm::map_to_vector(block.getOps<train::RowMeanOp>(),
                             [](train::RowMeanOp mean) -> Value { return mean.getValue(); });
}

} // namespace

/// The text of the object is its key: two regions whose bodies and types print alike are one, whatever their nodes.
std::string FusedTable::objectFor(sched::RunOp run) {
  Block &block = run.getBody().front();
  Printer printer(block, block.getTerminator()->getOperands(), names);
  std::string parameters = printer.parameters(), body = printer.body();
  RankedTensorType domain = run.domain();
  std::string steps, types;
  bool allF32 = true;
  auto noteType = [&](RankedTensorType type) {
    DataType data = tensorOf(type).type;
    types += (types.empty() ? "" : ", ") + dataTypeText(data);
    allF32 &= data == DataType::F32;
  };
  for (unsigned i = 0; i < run.getIns().size(); ++i) {
    noteType(run.inType(i));
    steps += std::string(i ? ", " : "") +
             (train::advancesInnermost(run.inType(i), run.isChannel(i), domain) ? "true" : "false");
  }
  // Full results come first, then sums, as in the runtime's Fused<F>.
  int64_t sums = *run.getSums(), outputs = static_cast<int64_t>(run.getOuts().size()) - sums;
  for (unsigned i = 0; i < outputs; ++i)
    noteType(run.outType(i));
  std::string object;
  llvm::raw_string_ostream out(object);
  out << "  static constexpr int inputs = " << run.getIns().size() << ", outputs = " << outputs << ", sums = " << sums
      << ";\n";
  out << "  static constexpr bool steps[] = {" << steps << "};\n";
  if (!allF32)
    out << "  static constexpr DataType types[] = {" << types << "};\n";
  if (printer.random)
    out << "  static constexpr bool random = true;\n";
  const SmallVector<Value> terms = meanTerms(block);
  const std::string rows = terms.empty() ? "" : "Values<" + std::to_string(terms.size()) + ">";
  if (!terms.empty()) {
    Printer sides(block, terms, names);
    const std::string given = sides.parameters(false);
    out << "  static constexpr int means = " << terms.size() << ";\n  SLUICE_KERNEL " << rows << " rowTerms(" << given
        << ") const {\n"
        << sides.body() << "  }\n";
  }
  out << "  SLUICE_KERNEL Values<" << outputs + sums << "> operator()(" << (printer.random ? "Element element, " : "")
      << (terms.empty() ? "" : rows + " row, ") << parameters << ") const {\n"
      << body << "  }\n};\n";
  auto [known, isNew] = byBody.try_emplace(object);
  if (isNew) {
    known->second = names.unique(camelCase(run.getRule().value_or("fused")));
    text += "\nstruct " + known->second + " {\n" + object;
  }
  return known->second;
}
