// SPDX-License-Identifier: Apache-2.0
// What the name of a tensor says of its origin: the path of a module's parameter (`blocks.0.gamma`), a name that an
// exporter or optimizer has made up (`onnx::Mul_12`), or one that is given to constants alone (`helper.constant.3`).
#include "frontend/TensorRoles.h"

#include <re2/re2.h>

namespace sluice {
namespace {

bool matches(const std::string &name, const re2::RE2 &pattern) { return re2::RE2::FullMatch(name, pattern); }

/// TensorFlow's values are `scope/op:0`; variables are read by ReadVariableOp, or, in frozen graphs of version 1, are
/// constants of the variable's own name. Operands of ops that are constants are called x and y, a and b.
NameScheme tensorFlowScheme(const std::string &name) {
  static const re2::RE2 variable(
      "(.*/)?(ReadVariableOp(_\\d+)?(/resource)?|read|kernel|bias|gamma|beta|alpha|weights?|biases|embeddings?|"
      "(depthwise|pointwise|recurrent)_kernel|moving_(mean|variance)):\\d+");
  static const re2::RE2 constant(
      "(.*/)?([xyab]|Const|value|start|delta|limit|epsilon|zeros|ones|Fill|"
      "batchnorm/(Rsqrt|mul_2)|normalization(_\\d+)*/truediv)(_\\d+)?:\\d+"); // of statistics alone
  return matches(name, variable)   ? NameScheme::Module
         : matches(name, constant) ? NameScheme::Constant
                                   : NameScheme::Tool;
}

} // namespace

std::string mergedLayer(const std::string &name) {
  static const re2::RE2 merged("(.+)/batchnorm/(mul|sub|add|Rsqrt)(_\\d+)?(:|__)\\d+");
  std::string layer;
  return re2::RE2::FullMatch(name, merged, &layer) ? layer : "";
}

bool isPaddleBuffer(const std::string &name) {
  static const re2::RE2 buffer("(eager_tmp|generated_tensor)_\\d+");
  return matches(name, buffer);
}

/// The order of the tests matters: tf2onnx's names of variables would pass for those of a tool. What no test knows is a
/// module's.
NameScheme nameScheme(const std::string &name) {
  static const re2::RE2 tensorFlow(".+:\\d+");
  // PyTorch's `/attn/Constant_3_output_0`, Paddle's `helper.constant.1` and `p2o.pd_op.full.0.0`, sklearn's
  // `Mu_Mulcst`, `scalar_tensor_default` of torch.export, and what writers of graphs by hand call numbers.
  static const re2::RE2 constant(
      "/(.*/)?Constant(_\\d+)?_output_\\d+|"
      "(helper\\.constant|auto\\.constant|p2o\\.(pd_op\\.full|helper))\\b.*|"
      "[A-Za-z]+_[A-Za-z]+cst\\d*|(.*[._/])?_?(lifted_tensor|tensor_constant).*|"
      "([^./]*_)?(?i:consts?|constants?)(_[^./]*)?\\d*|"
      "scalar_tensor.*|_?(mul|plus|minus|div|r?sub|add)_?scalar\\d*|"
      "(.*[./])?(?i:eps|epsilon)[_\\d]*|"
      "(?i:(minus|neg|negative)_?)?(?i:zeros?|ones?|two|three|four|half|unity|inf|pi)[_\\d]*");
  // What torch.export calls values, by their op, becomes the name of a tensor once a tool has folded them.
  static const re2::RE2 tool(
      "/.*|onnx::.*|\\d+|_?val_\\d+|.*__\\d+|ortshared_.*|(p2o|auto|helper)\\..*|"
      "_?(r?sqrt|mul|add|sub|div|pow|neg|exp|log|reciprocal|sum|clone|expand|full|(full|ones|zeros)_like|"
      "new_\\w+|arange|view|reshape|unsqueeze|squeeze|permute|transpose|select|slice|cat|where|clamp|to_copy|to|"
      "detach|lift_fresh_copy)(_\\d+)?");
  static const re2::RE2 splitVariable("(.*/)?ReadVariableOp(_\\d+)?__\\d+"); // by tf2onnx, one for each reader
  if (name.rfind("onnx::", 0) != 0 && matches(name, tensorFlow))
    return tensorFlowScheme(name);
  if (matches(name, splitVariable))
    return NameScheme::Module;
  if (name.rfind("const_fold_opt__", 0) == 0) // of variables, too
    return NameScheme::Tool;
  return matches(name, constant) || isPaddleBuffer(name) ? NameScheme::Constant
         : matches(name, tool)                           ? NameScheme::Tool
                                                         : NameScheme::Module;
}

} // namespace sluice
