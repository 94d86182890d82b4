// SPDX-License-Identifier: Apache-2.0
// See TrainWords.h.
#include "tools/TrainWords.h"

#include "runtime/Printable.h"
#include "runtime/Spelling.h"
#include "runtime/files/File.h"
#include "runtime/program/Flags.h"
#include "tools/Driver.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace sluice {

namespace {

/// A flag with its value, if it has one.
struct Given {
  std::string name, value;
  bool hasValue = false;

  std::string word() const { return hasValue ? name + "=" + value : name; }
};

/// With these sluicec makes something else than a program, or nothing.
bool makesNoProgram(const std::string &flag) {
  static const std::set<std::string> flags = {"--check", "--list-parameters", "--max-batch", "--emit", "--version"};
  return flags.count(flag) != 0;
}

std::string unknown(const std::string &name, const std::map<std::string, bool> &compiler) {
  std::vector<std::string> known;
  for (const auto &[flag, takesValue] : compiler)
    known.push_back(flag);
  for (const FlagGroup &group : flagGroups())
    for (const Flag &flag : group.flags)
      known.emplace_back(flag.name);
  return "unknown flag '" + printable(name) + "' (see sluicec --help, and --help of a program)" +
         didYouMean(name, known);
}

/// Sorts words by whom they belong to, as the lists of flags of both say.
class Splitting {
public:
  explicit Splitting(const std::vector<std::string> &words) : words(words), compiler(compilerFlags()) {}

  Result<TrainWords> run() {
    predicts = std::any_of(words.begin(), words.end(), [](const std::string &word) {
      return word == "--predict" || word.compare(0, 10, "--predict=") == 0;
    });
    for (size_t at = 0; at < words.size(); ++at)
      if (Status taken = words[at].compare(0, 1, "-") == 0 ? take(at) : takeModel(words[at]); !taken)
        return taken.takeError();
    if (model.empty())
      return Error{"sluice train needs a model: sluice train MODEL [FLAG]..."};
    if (out.made.empty())
      out.made = std::filesystem::path(model).stem();
    return std::move(out);
  }

private:
  Status takeModel(const std::string &word) {
    if (!model.empty())
      return Error{"'" + printable(word) + "' is a second model beside '" + printable(model) + "'"};
    model = word;
    out.compiler.push_back(word);
    return Success{};
  }

  /// The flag at `at`, which moves on to its value where that stands apart.
  Status take(size_t &at) {
    Given flag;
    const size_t equals = words[at].compare(0, 2, "--") == 0 ? words[at].find('=') : std::string::npos;
    flag.name = words[at].substr(0, equals);
    const auto ofCompiler = compiler.find(flag.name);
    const Flag *ofProgram = findFlag(flag.name);
    if (ofCompiler == compiler.end() && !ofProgram)
      return Error{unknown(flag.name, compiler)};
    if (makesNoProgram(flag.name))
      return Error{flag.name + " makes no program that could train: give it to sluicec"};
    const bool takesValue = ofProgram ? ofProgram->value != nullptr : ofCompiler->second;
    flag.hasValue = takesValue || equals != std::string::npos;
    if (equals != std::string::npos)
      flag.value = words[at].substr(equals + 1);
    else if (takesValue && at + 1 == words.size())
      return Error{flag.name + " needs a value"};
    else if (takesValue)
      flag.value = words[++at];
    give(flag, ofCompiler != compiler.end(), ofProgram);
    return Success{};
  }

  void give(const Given &flag, bool ofCompiler, const Flag *ofProgram) {
    if (flag.name == "-o") {
      out.made = flag.value;
      out.compiler.insert(out.compiler.end(), {"-o", flag.value});
      return;
    }
    if (ofCompiler && ofProgram)
      return giveShared(flag);
    (ofCompiler ? out.compiler : out.program).push_back(flag.word());
  }

  /// Flags that both know. Most go to both; of these three the value tells: drawn values and shared inputs are the
  /// compiler's, an output is the program's where it predicts.
  void giveShared(const Given &flag) {
    static const std::set<std::string> drawn = {"keep", "kaiming", "xavier"};
    bool first = true, second = true;
    if (flag.name == "--init")
      second = !(first = drawn.count(flag.value) != 0);
    else if (flag.name == "--input")
      second = !(first = endsWith(flag.value, "=shared"));
    else if (flag.name == "--output")
      first = !(second = predicts);
    if (first) // of the compiler some are switches, whose value is the program's
      out.compiler.push_back(compiler.at(flag.name) ? flag.word() : flag.name);
    if (second)
      out.program.push_back(flag.word());
  }

  const std::vector<std::string> &words;
  const std::map<std::string, bool> compiler;
  TrainWords out;
  std::string model;
  bool predicts = false;
};

} // namespace

Result<TrainWords> splitTrainWords(const std::vector<std::string> &words) { return Splitting(words).run(); }

} // namespace sluice
