// SPDX-License-Identifier: Apache-2.0
// Einsum as sums, transposes, reshapes and matrix products: operands are multiplied from the left, a dimension is
// summed as soon as neither the result nor an operand to come has its label.
#include "frontend/Compositions.h"

using namespace mlir;

namespace sluice {
namespace {

/// A tensor with a label for each dimension; those of an ellipsis are control characters, counted from its end.
struct Term {
  Value value; ///< null after an error
  std::string labels;
  int64_t extent(char label) const { return shapeOf(value)[labels.find(label)]; }
};

bool has(const std::string &labels, char label) { return labels.find(label) != std::string::npos; }

std::string chosen(const std::string &labels, llvm::function_ref<bool(char)> wanted) {
  std::string some;
  for (char label : labels)
    if (wanted(label))
      some += label;
  return some;
}

/// Labels of an operand of `rank` dimensions, or of the result, which has the ellipsis of `ellipsis` dimensions.
std::string labelsOf(StringRef text, int64_t ellipsis) {
  std::string labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!text.substr(i).starts_with("...")) {
      labels += text[i];
      continue;
    }
    for (int64_t left = ellipsis; left > 0; --left)
      labels += static_cast<char>(left);
    i += 2;
  }
  return labels;
}

/// The equation without spaces, in parts.
struct Equation {
  SmallVector<StringRef> operands;
  StringRef result;
  bool explicitResult = false;

  explicit Equation(const std::string &text) {
    auto [left, right] = StringRef(text).split("->");
    explicitResult = StringRef(text).contains("->");
    left.split(operands, ',');
    result = right;
  }
};

/// Multiplies operands from left to right, each product as matrices of one batch. Before each product, labels that
/// neither the result nor a later operand has are summed away, which keeps what stands in memory small.
class Einsum {
public:
  explicit Einsum(NodeImport &node) : node(node) {}

  Value run() {
    for (char c : node.attributes.text("equation", ""))
      if (c != ' ')
        text += c;
    const Equation equation(text);
    if (static_cast<int64_t>(equation.operands.size()) != node.inputs())
      return refuse("has " + std::to_string(equation.operands.size()) + " operands for " +
                    std::to_string(node.inputs()) + " inputs");
    std::vector<Term> terms;
    for (int i = 0; i < node.inputs(); ++i)
      if (terms.push_back(read(i, equation.operands[i])); !terms.back().value)
        return {};
    result = equation.explicitResult ? labelsOf(equation.result, ellipsis) : implicitResult(terms);
    if (!checkResult())
      return {};
    Term product = summedFor(terms[0], ArrayRef<Term>(terms).drop_front());
    for (size_t i = 1; i < terms.size() && product.value; ++i) {
      ArrayRef<Term> rest = ArrayRef<Term>(terms).drop_front(i + 1);
      product = multiplied(product, terms[i], rest);
    }
    return arranged(product, result);
  }

private:
  Value refuse(const std::string &why) {
    (void)node.error("equation '" + text + "' " + why);
    return {};
  }

  /// An operand that may be a weight, with labels that agree with those before.
  Term read(int input, StringRef labels) {
    Use use{Use::Weight};
    use.inputsFirst = true;
    Term term{node.tensor(input, use), ""};
    if (!term.value)
      return term;
    const int64_t rank = typeOf(term.value).getRank();
    const int64_t own = labels.contains("...") ? rank - static_cast<int64_t>(labels.size()) + 3 : 0;
    ellipsis = std::max(ellipsis, own);
    term.labels = labelsOf(labels, own);
    if (own < 0 || static_cast<int64_t>(term.labels.size()) != rank)
      return {refuse("does not label the dimensions of an input of shape " + shapeText(shapeOf(term.value).vec())), ""};
    for (char label : term.labels) {
      if (llvm::count(term.labels, label) > 1)
        return {refuse("has a label twice in one operand, which is not supported"), ""};
      auto known = extents.emplace(label, term.extent(label)).first;
      if (known->second != term.extent(label))
        return {refuse("has a label of the extents " + std::to_string(known->second) + " and " +
                       std::to_string(term.extent(label)) + "; they must be equal"),
                ""};
    }
    return term;
  }

  /// Without an arrow: the ellipsis, then labels that occur once, in the order of the alphabet.
  std::string implicitResult(ArrayRef<Term> terms) const {
    std::string all, once = labelsOf("...", ellipsis);
    for (const Term &term : terms)
      all += term.labels;
    llvm::sort(all);
    return once + chosen(all, [&](char label) { return label > ellipsis && llvm::count(all, label) == 1; });
  }

  bool checkResult() {
    for (char label : result)
      if (llvm::count(result, label) > 1 || !extents.count(label))
        return refuse("has a result with a label that is no operand's, or twice there"), false;
    return true;
  }

  bool isKept(char label, ArrayRef<Term> rest) const {
    return has(result, label) || llvm::any_of(rest, [&](const Term &term) { return has(term.labels, label); });
  }

  /// The term without the dimensions that neither the result nor `rest` has.
  Term summedFor(const Term &term, ArrayRef<Term> rest) {
    if (!term.value)
      return term;
    Term kept{term.value, chosen(term.labels, [&](char label) { return isKept(label, rest); })};
    if (kept.labels == term.labels)
      return kept;
    SmallVector<int64_t> ones, shape;
    for (char label : term.labels)
      ones.push_back(has(kept.labels, label) ? term.extent(label) : 1);
    for (char label : kept.labels)
      shape.push_back(term.extent(label));
    Value sum = summed(node, term.value, ones);
    kept.value = sum ? node.reshape(sum, shape) : Value();
    return kept;
  }

  /// The term's dimensions in the order of `labels`, which are the same ones.
  Value arranged(const Term &term, const std::string &labels) {
    SmallVector<int64_t> order;
    for (char label : labels)
      order.push_back(static_cast<int64_t>(term.labels.find(label)));
    return permuted(node, term.value, order);
  }

  int64_t size(const std::string &labels) const {
    int64_t count = 1;
    for (char label : labels)
      count *= extents.at(label);
    return count;
  }

  /// A matrix product of what the two terms share and the result does not have, for each index that all three have.
  Term multiplied(const Term &first, const Term &second, ArrayRef<Term> rest) {
    SmallVector<Term> before(rest), behind(rest);
    before.push_back(second);
    behind.push_back(first);
    const Term a = summedFor(first, before), b = summedFor(second, behind);
    if (!a.value || !b.value)
      return {};
    auto shared = [&](char label) { return has(a.labels, label) && has(b.labels, label); };
    const std::string batch = chosen(a.labels, [&](char l) { return shared(l) && isKept(l, rest); }),
                      inner = chosen(a.labels, [&](char l) { return shared(l) && !isKept(l, rest); }),
                      rows = chosen(a.labels, [&](char l) { return !shared(l); }),
                      columns = chosen(b.labels, [&](char l) { return !shared(l); });
    Value left = matrix(a, batch, rows, inner), right = matrix(b, batch, inner, columns);
    Value y = inner.empty() ? binary<train::MulOp>(node, left, right) : product(left, right);
    const std::string labels = batch + rows + columns;
    SmallVector<int64_t> shape;
    for (char label : labels)
      shape.push_back(extents.at(label));
    return {y ? node.reshape(y, shape) : Value(), labels};
  }

  /// The term as [batch, rows, columns], without the first where there is no batch.
  Value matrix(const Term &term, const std::string &batch, const std::string &rows, const std::string &columns) {
    Value x = arranged(term, batch + rows + columns);
    SmallVector<int64_t> shape = {size(batch), size(rows), size(columns)};
    if (batch.empty())
      shape.erase(shape.begin());
    return x ? node.reshape(x, shape) : Value();
  }

  Value product(Value left, Value right) {
    auto op = left && right ? node.make<train::MatmulOp>(left, right, Value(), false, false, node.f32(1), node.f32(1))
                            : train::MatmulOp();
    return op ? op.getY() : Value();
  }

  NodeImport &node;
  std::string text, result; ///< the equation, and the result's labels
  int64_t ellipsis = 0;     ///< dimensions of the longest one
  std::map<char, int64_t> extents;
};

LogicalResult importEinsum(NodeImport &node) { return node.result(Einsum(node).run()); }

} // namespace

void addEinsum(NodeImporters &table) { table["Einsum"] = importEinsum; }

} // namespace sluice
