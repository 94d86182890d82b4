// SPDX-License-Identifier: Apache-2.0
// Which float tensors of a file are trained and which are an exporter's numbers, by what the file says of them, by
// their names, their values and what reads them. No MLIR in here.
#ifndef SLUICE_FRONTEND_TENSOR_ROLES_H
#define SLUICE_FRONTEND_TENSOR_ROLES_H

#include "frontend/NamePatterns.h"
#include "frontend/TrainingSpec.h"
#include <map>
#include <optional>
#include <set>

namespace sluice {

class OnnxFile;
struct OnnxGraph;
struct FileTensor;

/// What --freeze and --train say. If both match a tensor, neither applies, so that `--freeze=.* --train=head.*` freezes
/// all but the head and trains no constant of the head. With adapters that --adapter added, --freeze is taken to match
/// all else. A tensor is meant by any of its names.
struct HandRoles {
  NamePatterns freeze, train;
  std::vector<NamePatterns> turns;                                        ///< what each turn trains; none: all steps do
  std::map<std::string, AdapterPart, std::less<>> adapters;               ///< those that --adapter added
  std::map<std::string, std::vector<std::string>, std::less<>> tied = {}; ///< other names of tensors (TiedNames.h)
  static Result<HandRoles> of(const TrainingSpec &spec);
  bool freezes(std::string_view name) const { return !adapters.count(name) && isFrozen(name) && !isTrained(name); }
  bool trains(std::string_view name) const { return adapters.count(name) || (isTrained(name) && !isFrozen(name)); }
  /// The turns whose expressions match one of the tensor's names.
  std::vector<size_t> turnsOf(std::string_view name) const;
  /// Whether no turn trains what else would be trained.
  bool isInNoTurn(std::string_view name) const { return !turns.empty() && turnsOf(name).empty(); }
  /// These and their other names.
  std::vector<std::string> withTied(std::vector<std::string> names) const;
  std::optional<AdapterPart> adapterPart(std::string_view name) const {
    const auto part = adapters.find(name);
    return part == adapters.end() ? std::nullopt : std::optional(part->second);
  }

private:
  bool isFrozen(std::string_view name) const { return !adapters.empty() || matches(freeze, name); }
  bool isTrained(std::string_view name) const { return matches(train, name); }
  bool matches(const NamePatterns &patterns, std::string_view name) const;
};

/// Why a float tensor of the file is held fixed.
enum class Hold {
  Condition,    ///< it reaches comparisons and conditions alone
  Buffer,       ///< torch.export marks parameters, and this is none
  ConstantNode, ///< the output of a Constant node that is no weight
  Setting,      ///< a bound, ratio or scale that ops need when compiling
  Number,       ///< a single number that no module names
  Uniform,      ///< equal everywhere, and no module names it
  Named,        ///< it has a name that exporters give constants alone
  Mask,         ///< zeros and ones that are factors, zeros and one large negative number that are summands
  Preparation,  ///< of a preprocessing step of scikit-learn, which training does not change
  Epsilon,      ///< a small number added to what a root, a logarithm or a quotient takes
  Root,         ///< a whole number whose root is taken
  LossFactor    ///< it weighs a term of the loss, which would only shrink
};

/// The reason, as --list-parameters says it.
const char *describe(Hold hold);
/// Whether a rule of ours decides, not what the file itself says of the tensor.
bool isByRule(Hold hold);

struct TensorRoles {
  std::vector<std::string> floats; ///< all float32 initializers and Constant nodes that live nodes read, in file order
  std::map<std::string, Hold> held;
  std::set<std::string> weights; ///< outputs of Constant nodes that are no constants
  std::set<std::string> chosen;  ///< trained by rule: single numbers that a module names, for instance
  /// Trained biases [D,2*G*H] of recurrent layers whose second half stands for a bias that the framework does not have:
  /// zeros, which stay.
  std::set<std::string> halfBiases;
  std::set<std::string> repeated; ///< a row for each sample, all the same: what folding leaves of an expanded parameter
};

/// Roles of the live tensors of a graph. Tensors that are trained by hand are held by none of the rules.
TensorRoles findRoles(const OnnxFile &file, const OnnxGraph &graph, bool modelHasLoss, const HandRoles &hand);

/// Whether every element of a file tensor has the same bytes.
bool isUniform(const FileTensor &tensor);
/// Whether all its slices along the first dimension, several, have the same bytes.
bool hasEqualRows(const FileTensor &tensor);
/// Whether a float32 tensor holds zeros and ones alone, and both.
bool isGate(const FileTensor &tensor);
/// Whether a float32 tensor holds zeros and one finite number of -100 or less alone, and both: what is added to scores
/// of attention to hide them.
bool hidesScores(const FileTensor &tensor);
/// Of a float32 tensor [rows, 2*n], n > 0: whether the last n numbers of each row are zero.
bool endsInZeros(const FileTensor &tensor);

/// Whose scheme a tensor's name follows.
enum class NameScheme { Module, Tool, Constant };
NameScheme nameScheme(const std::string &name);
/// The layer of TensorFlow's BatchNormalization of which the tensor is a merged part; empty for others.
std::string mergedLayer(const std::string &name);
/// Whether Paddle calls tensors so that are no parameters: those end in .w_0 or .b_0.
bool isPaddleBuffer(const std::string &name);

} // namespace sluice

#endif
