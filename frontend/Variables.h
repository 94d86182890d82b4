// SPDX-License-Identifier: Apache-2.0
// Variables of the module and the rules for their roles and first values: what is a parameter, a state, a constant.
#ifndef SLUICE_FRONTEND_VARIABLES_H
#define SLUICE_FRONTEND_VARIABLES_H

#include "frontend/HostTensor.h"
#include "frontend/OnnxFile.h"
#include "frontend/TensorRoles.h"
#include "frontend/TrainingSpec.h"
#include "ir/Train.h"
#include <map>
#include <set>
#include <tuple>

namespace sluice {

/// A tensor of the model that is no activation, by the ONNX value that names it.
struct Source {
  std::string name;                   ///< of the variable it becomes
  std::string initializer;            ///< where its values lie in the file; empty when `value` holds them
  const FileTensor *tensor = nullptr; ///< those values
  std::optional<HostTensor> value;    ///< known values; one element stands for all when `shape` has more
  std::vector<int64_t> shape;
  int32_t elementType = 0;
  bool constantNode = false; ///< output of Constant, ConstantOfShape or of folding, or an initializer that is held
  std::optional<Hold> hold;  ///< why, where it is a tensor of the file
  bool invented = false;     ///< made by an importer: no value of the model, even if one has the name
};

/// How a node uses a source; decides the role and the first value under --init=kaiming and xavier.
struct Use {
  enum Kind { Weight, Bias, Scale, Table, Operand, Factor, Branch, Mean, Variance } kind = Operand;
  bool inputsFirst = false; ///< a weight [..., in, out]; PyTorch's own are [out, in, ...]
  bool inputsLast = false;  ///< a weight [..., out, in]
  bool isState() const { return kind == Mean || kind == Variance; }
  /// Weight, Bias, Scale and Table (of an embedding) stand at weight operands; Operand and Factor are summands and
  /// factors of arithmetic, Branch one of the values that Where chooses from.
  bool isWeightOperand() const { return kind == Weight || kind == Bias || kind == Scale || kind == Table; }
};

/// The variables of the module, which @step and @evaluate share: one for each tensor, or two where one use is that of a
/// state.
class Variables {
public:
  /// Keeps references. `constantsAreWeights`: outputs of Constant nodes at weight operands are trained, see OnnxGraph.
  Variables(mlir::ModuleOp module, const TrainingSpec &spec, const HandRoles &hand, bool constantsAreWeights);
  /// The variable for a use of `source` by `user` ("node 'conv1' (Conv)"); made on first use.
  Result<train::VariableOp> get(const Source &source, const Use &use, const std::string &user);
  /// Drops variables that no function uses.
  void removeUnused();
  /// Says of variables which other names their tensors have.
  void setTied(const std::map<std::string, std::vector<std::string>> &names);
  /// Those that flags hold fixed and that are constants in all of their uses, without those that the file has in fewer
  /// bits.
  std::vector<train::VariableOp> frozen() const;
  /// Names and roles of the variables that there are, but those that importers invented.
  std::vector<std::pair<std::string, train::Role>> roles() const;

private:
  /// What a variable is, where its first value comes from, and why, for --list-parameters.
  struct Decision {
    train::Role role;
    train::Init init;
    std::string reason;
  };
  Decision decide(const Source &source, const Use &use, const std::string &user) const;
  /// The same before turns are asked.
  Decision decideAlone(const Source &source, const Use &use, const std::string &user) const;
  train::Init firstValue(const Source &source, const Use &use) const;
  bool isFunctionName(const std::string &symbol) const;
  std::string symbolFor(const Source &source, bool isState) const;
  train::VariableOp create(const Source &source, const Use &use, const Decision &decision, const std::string &symbol);

  mlir::ModuleOp module;
  mlir::OpBuilder builder;
  const TrainingSpec &spec;
  const HandRoles &hand;
  bool constantsAreWeights;
  /// By name of the source, whether it is used as state, and whether an importer invented it.
  std::map<std::tuple<std::string, bool, bool>, train::VariableOp> made;
  std::set<std::string> symbols;
};

} // namespace sluice

#endif
