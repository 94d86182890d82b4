// SPDX-License-Identifier: Apache-2.0
// Prints the scalar ops of a region as straight-line C++, one line an op.
#include "codegen/Document.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::codegen;

namespace {

class Printer {
public:
  explicit Printer(Block &block) : block(block) {
    for (auto [i, argument] : llvm::enumerate(block.getArguments()))
      names[argument] = i < 26 ? std::string(1, 'a' + i) : "in" + std::to_string(i);
  }

  std::string parameters() {
    std::string out;
    for (Value argument : block.getArguments())
      out += (out.empty() ? "float " : ", float ") + names[argument];
    return out;
  }

  std::string body() {
    std::string out;
    llvm::raw_string_ostream stream(out);
    for (Operation &op : block.without_terminator()) {
      if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
        names[constant] = floatLiteral(cast<FloatAttr>(constant.getValue()).getValueAsDouble());
        continue;
      }
      std::string text = expression(&op);
      if (isa<arith::CmpFOp>(op)) { // only selects read it
        names[op.getResult(0)] = "(" + text + ")";
        continue;
      }
      std::string name = "v" + std::to_string(count++);
      names[op.getResult(0)] = name;
      stream << "    const float " << name << " = " << text << ";\n";
    }
    stream << "    return {{";
    for (auto [i, value] : llvm::enumerate(block.getTerminator()->getOperands()))
      stream << (i ? ", " : "") << names[value];
    stream << "}};\n";
    return out;
  }

  bool random = false;

private:
  std::string of(Value value) { return names[value]; }

  std::string compare(arith::CmpFOp op) {
    std::string a = of(op.getLhs()), b = of(op.getRhs());
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
      llvm::report_fatal_error("a scalar rule compares in a way that codegen does not print");
    }
  }

  std::string expression(Operation *op) {
    auto infix = [&](const char *sign) { return of(op->getOperand(0)) + sign + of(op->getOperand(1)); };
    auto call = [&](const char *function) { return std::string(function) + "(" + of(op->getOperand(0)) + ")"; };
    return llvm::TypeSwitch<Operation *, std::string>(op)
        .Case([&](arith::AddFOp) { return infix(" + "); })
        .Case([&](arith::SubFOp) { return infix(" - "); })
        .Case([&](arith::MulFOp) { return infix(" * "); })
        .Case([&](arith::DivFOp) { return infix(" / "); })
        .Case([&](arith::CmpFOp c) { return compare(c); })
        .Case([&](arith::SelectOp s) {
          return of(s.getCondition()) + " ? " + of(s.getTrueValue()) + " : " + of(s.getFalseValue());
        })
        .Case([&](math::SqrtOp) { return call("sqrtf"); })
        .Case([&](math::ExpOp) { return call("exponential"); })
        .Case([&](math::TanhOp) { return call("hyperbolicTangent"); })
        .Case([&](math::LogOp) { return call("logarithm"); })
        .Case([&](math::ErfOp) { return call("errorFunction"); })
        .Case([&](train::UniformOp u) {
          random = true;
          const std::string group = u.getGroup() == 1 ? "" : " / " + std::to_string(u.getGroup());
          return "uniform(randomKey(element.seed, " + std::to_string(u.getKey()) + "u, element.step), element.index" +
                 group + ")";
        })
        .Default([](Operation *other) -> std::string {
          llvm::report_fatal_error(llvm::Twine("codegen cannot print the scalar op ") +
                                   other->getName().getStringRef());
        });
  }

  Block &block;
  llvm::DenseMap<Value, std::string> names;
  int count = 0;
};

} // namespace

std::string FusedTable::objectFor(sched::RunOp run) {
  Printer printer(run.getBody().front());
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
  out << "  SLUICE_KERNEL Values<" << outputs + sums << "> operator()(" << (printer.random ? "Element element, " : "")
      << parameters << ") const {\n"
      << body << "  }\n};\n";
  auto [known, isNew] = byBody.try_emplace(object);
  if (isNew) {
    known->second = names.unique(camelCase(run.getRule().value_or("fused")));
    text += "\nstruct " + known->second + " {\n" + object;
  }
  return known->second;
}
