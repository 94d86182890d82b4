// SPDX-License-Identifier: Apache-2.0
// See BatchNormForms.h.
#include "frontend/BatchNormForms.h"

#include "frontend/Attributes.h"
#include "frontend/NamePatterns.h"
#include "frontend/Refusals.h"
#include "onnx/onnx_pb.h"

#include <algorithm>
#include <optional>

namespace sluice {
namespace {

constexpr int64_t trainingModeSince = 14;

/// PyTorch's present exporter writes inference form always; what the module was, the node's metadata say by the name of
/// the op of torch.export that it came of. Nothing for nodes of other exporters.
std::optional<bool> formByTorchExport(const onnx::NodeProto &node) {
  for (const auto &entry : node.metadata_props())
    if (entry.key() == "pkg.torch.onnx.class_hierarchy") {
      const bool known = entry.value().find("_native_batch_norm_legit") != std::string::npos;
      const bool inference = entry.value().find("_native_batch_norm_legit_no_training") != std::string::npos;
      return known ? std::optional(!inference) : std::nullopt;
    }
  return std::nullopt;
}

bool isTrainingForm(const onnx::NodeProto &node, int64_t opset) {
  if (std::optional<bool> form = formByTorchExport(node))
    return *form;
  if (opset >= trainingModeSince)
    return Attributes(node).integer("training_mode", 0) != 0;
  return std::count_if(node.output().begin(), node.output().end(), [](const auto &name) { return !name.empty(); }) > 1;
}

/// What expressions are matched with: the node, its scale, its output.
std::vector<std::string> namesOf(const onnx::NodeProto &node) {
  std::vector<std::string> names = {node.name()};
  if (node.input_size() > 1)
    names.push_back(node.input(1));
  if (node.output_size() > 0)
    names.push_back(node.output(0));
  return names;
}

/// A rule of --batch-norm with its expression, and whether a node has it.
struct CompiledRule {
  BatchNormMode mode;
  NamePatterns pattern;
  bool matched = false;
};

std::string remarkOn(size_t inference, size_t all, const TrainingSpec &spec) {
  if (!inference)
    return "";
  const std::string nodes = (inference == all ? "" : std::to_string(inference) + " of ") +
                            counted(all, "BatchNormalization node") + (inference == 1 ? " is" : " are") +
                            " in inference form";
  if (spec.init != InitialValues::Keep)
    return nodes + ", whose statistics --init=" + toString(spec.init) +
           " draws anew: each batch's are taken; --batch-norm=frozen normalizes by what is drawn";
  return nodes + " and trained by the running statistics of the file, which do not move; --batch-norm=train takes each "
                 "batch's";
}

} // namespace

Result<BatchNormForms> BatchNormForms::find(const std::vector<const onnx::NodeProto *> &nodes, int64_t opset,
                                            const TrainingSpec &spec) {
  std::vector<CompiledRule> rules;
  for (const BatchNormRule &rule : spec.batchNormRules) {
    auto pattern = NamePatterns::compile("--batch-norm=" + toString(rule.mode), {rule.pattern});
    if (!pattern)
      return pattern.takeError();
    rules.push_back({rule.mode, std::move(*pattern)});
  }
  BatchNormForms forms;
  size_t inference = 0, all = 0;
  for (const onnx::NodeProto *node : nodes) {
    if (node->op_type() != "BatchNormalization")
      continue;
    ++all;
    // The last rule that matches decides, as with flags that are given twice.
    BatchNormMode mode = spec.batchNorm;
    const std::vector<std::string> names = namesOf(*node);
    for (CompiledRule &rule : rules)
      if (std::any_of(names.begin(), names.end(), [&](const auto &name) { return rule.pattern.matches(name); })) {
        rule.matched = true;
        mode = rule.mode;
      }
    const bool trains = isTrainingForm(*node, opset);
    inference += mode == BatchNormMode::File && !trains;
    if (mode == BatchNormMode::Train || (mode == BatchNormMode::File && (trains || spec.init != InitialValues::Keep)))
      forms.byBatch.insert(node);
  }
  for (size_t i = 0; i < rules.size(); ++i)
    if (!rules[i].matched)
      return Error{"--batch-norm=" + toString(rules[i].mode) + ":" + spec.batchNormRules[i].pattern +
                   " matches no BatchNormalization: neither the name of a node, nor of its scale, nor of its output"};
  if (spec.normRanks > 0 && forms.byBatch.empty())
    return Error{"--batch-norm=synchronized,ranks=" + std::to_string(spec.normRanks) + ": " +
                 (all == 0
                      ? "the model has no BatchNormalization"
                      : "no BatchNormalization takes its batch's statistics in a step; --batch-norm=train lets all of "
                        "them do so")};
  forms.remark = remarkOn(inference, all, spec);
  return forms;
}

} // namespace sluice
