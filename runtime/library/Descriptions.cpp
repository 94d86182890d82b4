// SPDX-License-Identifier: Apache-2.0
// The plan and the variables of a program as JSON.
#include "runtime/library/Model.h"

#include "runtime/Version.h"
#include "runtime/files/Npy.h"
#include "runtime/program/Predict.h"

#include "nlohmann/json.hpp"

#include <cstring>

namespace sluice {

using Json = nlohmann::ordered_json;

static std::string textOf(const Json &json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

static Json shapeOf(const Tensor &tensor) {
  Json shape = Json::array();
  for (int i = 0; i < tensor.shape.rank; ++i)
    shape.push_back(tensor.shape[i]);
  return shape;
}

std::string describePlan(const Program &program) {
  Json inputs = Json::array(), outputs = Json::array(), tensors = Json::array();
  for (int i = 0; i < program.inputCount; ++i) {
    const Input &input = program.inputs[i];
    inputs.push_back({{"name", input.name},
                      {"type", typeName(input.staging.type)},
                      {"shape", shapeOf(input.staging)},
                      {"target", isTarget(program, i)},
                      {"predicted", isPredictedFrom(program, i)},
                      {"shared", input.shared}});
  }
  for (const Output *output : predictedBy(program))
    outputs.push_back({{"name", output->name}, {"shape", shapeOf(output->tensor)}});
  for (int i = 0; i < program.planRows; ++i) {
    const PlanRow &row = program.plan[i];
    tensors.push_back({{"name", row.tensor},
                       {"node", row.node},
                       {"action", row.action},
                       {"bytes", row.bytes},
                       {"first", row.firstStep},
                       {"last", row.lastStep},
                       {"host", row.host}});
  }
  return textOf({{"version", 1}, // of these fields: rises when one changes its meaning
                 {"compiler", std::string(compilerVersion)},
                 {"model", program.model},
                 {"strategy", program.strategy},
                 {"optimizer", optimizerName(program.optimizer)},
                 {"batch", program.batch},
                 {"device_bytes", program.deviceBytes},
                 {"host_bytes", program.hostBytes},
                 {"device_base_bytes", program.deviceBase},
                 {"threads", program.threads},
                 {"predicted_seconds", program.predictedSecondsPerStep},
                 {"inputs", inputs},
                 {"outputs", outputs},
                 {"tensors", tensors}});
}

std::string describeVariables(const Program &program) {
  static constexpr const char *roles[] = {"parameter", "state", "constant", "optimizer", "gradient", "cache"};
  static_assert(static_cast<int>(Role::Cache) == 5, "the names follow the roles");
  Json list = Json::array();
  for (int i = 0; i < program.variableCount; ++i) {
    const Variable &variable = program.variables[i];
    Json also = Json::array();
    for (int k = 0; k < program.tiedCount; ++k)
      if (std::strcmp(program.tied[k].variable, variable.name) == 0)
        also.push_back(program.tied[k].name);
    list.push_back({{"name", variable.name},
                    {"also", also},
                    {"role", roles[static_cast<int>(variable.role)]},
                    {"weight", isModelTensor(variable)},
                    {"type", typeName(variable.asFloats().type)},
                    {"shape", shapeOf(variable.asFloats())},
                    {"bytes", variable.asFloats().bytes()}});
  }
  return textOf(list);
}

} // namespace sluice
