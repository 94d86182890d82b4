// SPDX-License-Identifier: Apache-2.0
// Where samples come from: one class per format, which knows how many there are and reads any one of them. Order,
// batches, layouts, range checks and augmentation are the data set's (runtime/program/Dataset.h).
#pragma once

#include "runtime/Program.h"
#include "runtime/data/ClassNames.h"
#include "runtime/data/Image.h"
#include "runtime/data/Skipped.h"
#include "runtime/data/TableColumns.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// What a source's values of an input are.
enum class Form {
  Numbers, ///< those of the program
  Raw,     ///< likewise, and lie over no image, as the user says
  Image,   ///< bytes, which readImage() gives and read() does not
  Planes   ///< numbers that lie over the pixels of the images, before these are changed, which readPlanes() gives
};

/// Numbers over the pixels of an image, in row-major order and of the staging tensor's element type.
struct PlaneValues {
  ImageSize size;
  int64_t planes = 0; ///< each of that size
  std::vector<char> values;
};

class SampleSource {
public:
  virtual ~SampleSource() = default;

  virtual int64_t samples() const = 0;

  /// Files that it reads, which no output may replace.
  virtual std::vector<std::string> paths() const = 0;

  virtual Form form(int) const { return Form::Numbers; }
  /// With as many channels as the input, or 3 where that has lost its form. Any thread, errors as read().
  virtual Image readImage(int, int64_t) const { return {}; }
  /// Of all images, where they are known to have one size.
  virtual std::optional<ImageSize> imageSize() const { return std::nullopt; }
  /// Of the image of one sample, where each has its own. Any thread, errors as read().
  virtual std::optional<ImageSize> imageSizeOf(int64_t) const { return imageSize(); }

  /// Any thread, errors as read(). Of a size of their own: whoever reads image and planes compares them.
  virtual PlaneValues readPlanes(int, int64_t) const { return {}; }

  /// The extents that a sample of an input has in the data, without a dimension of samples; nothing: those of the
  /// program, whose largest shape that is. Any thread.
  virtual std::optional<Shape> shapeOf(int, int64_t) const { return std::nullopt; }

  /// One sample of one input of the program, in row-major order, of shapeOf() and of the staging tensor's element type;
  /// all of a shared input, whatever the sample. Any thread. Throws DataError that names file and sample.
  virtual void read(int input, int64_t sample, char *values) const = 0;

  /// What messages call a sample: "data/target.npy: sample 3".
  virtual std::string name(int input, int64_t sample) const = 0;

  /// The file that a sample's first input is, below the folder of the data and without its ending: "dogs/12". Empty:
  /// it is no file of its own.
  virtual std::string fileStem(int64_t) const { return ""; }
  /// Of masks, `values` of MaskWords; nothing: it has none.
  virtual std::optional<std::string> maskValues() const { return std::nullopt; }

  /// What classes are called, where the source says it.
  virtual ClassNames classNames() const { return {}; }

  /// TableColumns::known() of a table; empty for others.
  virtual std::string knownColumns() const { return ""; }

  /// What whoever starts a run should know of how its values are taken, a line each.
  virtual std::vector<std::string> notes() const { return {}; }
  /// What of its files is not read, a part of notes().
  virtual std::vector<std::string> leftOut() const { return {}; }
  /// The same of what is probably wrong.
  virtual std::vector<std::string> warnings() const { return {}; }

  /// How many of them are looked at before training, spread over all.
  virtual int64_t samplesToCheck() const { return samples(); }

  /// Samples [begins[i], begins[i + 1]) lie one after the other and are best read together; empty: in any order.
  virtual std::vector<int64_t> begins() const { return {}; }
};

/// The data that are made up.
inline constexpr char syntheticData[] = "synthetic";

/// DIR or KIND:PATH with each path in it as `change` makes it.
std::string changePaths(const std::string &where, const std::function<std::string(const std::string &)> &change);

/// --input: what the user calls inputs of arrays, by their names.
enum class InputKind { Image, Raw };
using InputKinds = std::map<std::string, InputKind>;

struct SourceOptions {
  std::string where;   ///< DIR of .npy files, "synthetic" or KIND:PATH
  uint64_t seed = 0;   ///< of synthetic data
  bool targets = true; ///< false: nothing of the target is looked for or read
  bool skipBad = false, keepNan = false;
  InputKinds inputs = {};
  bool carried = false;                  ///< `inputs` are those of weights, and mean nothing to other data than arrays
  ColumnWords columns = {};              ///< of tables
  std::vector<std::string> classes = {}; ///< their names, by which a folder's are known; empty: in its own order
  std::vector<std::string> offered = {}; ///< instead of `classes`: names that count if the folder has no others
  Tell tell = nullptr;                   ///< with `skipBad`, see Skipped
};

/// Throws DataError when the data do not fit the program, which must outlive the source, and UsageError for a KIND that
/// there is not.
std::unique_ptr<SampleSource> openSource(const SourceOptions &options, const Program &program);

/// Elements and bytes of one sample of an input; of a shared one all.
int64_t sampleElements(const Input &input);
size_t sampleBytes(const Input &input);
/// What attached losses read and the model itself does not: the last inputs of a program.
bool isTarget(const Program &program, int input);
/// The names of all inputs, targets apart, as messages say what a program takes.
std::string takenBy(const Program &program);
/// Whether predictions need it.
inline bool isPredictedFrom(const Program &program, int input) { return !program.inputs[input].ofLossOnly; }

} // namespace sluice
