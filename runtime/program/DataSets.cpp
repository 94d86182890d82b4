// SPDX-License-Identifier: Apache-2.0
// What is trained on is opened first: the others are read as it says.

#include "runtime/program/DataSets.h"

#include "runtime/Printable.h"
#include "runtime/program/ClassNames.h"
#include "runtime/program/Outputs.h"
#include "runtime/program/Predict.h"
#include "runtime/program/Predictions.h"
#include "runtime/program/Preparation.h"
#include "runtime/program/Schedule.h"

#include <set>
#include <utility>

namespace sluice {

/// The data's own names of classes, by which it numbers them, stand over those of --class, which must not say others.
static void checkNames(const ClassNames &said, const ClassNames &ofData) {
  for (const auto &[target, names] : ofData)
    if (const auto other = said.find(target); other != said.end() && other->second != names)
      throw UsageError(text("--class names ", printable(someOf(other->second)), ", the data numbers its classes ",
                            printable(someOf(names)), ": leave --class out, or give the target as numbers"));
}

/// Rows without names stand for samples by their places.
static void takeAllRows(DataOptions &options, const std::string &output) {
  if (options.skipBad)
    options.noSkip =
        text("--on-bad-data=skip leaves none out of ", output, ", whose rows have no names: write .csv, .json or .npz");
  options.skipBad = false;
}

DataSets::DataSets(const Arguments &arguments, const Program &program, uint64_t seed, Tell tell) {
  DataOptions options = dataOptions(arguments, seed);
  options.tell = std::move(tell);
  classes = namesFrom(arguments.classes, program);
  classes.merge(ownNames(program, arguments.weightClasses));
  const int first = namedTargets(program)[0]; // the only one that folders have
  options.classes = namesOf(program, first, classes);
  options.offered = namesOf(program, first, arguments.offeredClasses);
  if (arguments.data) {
    options.where = *arguments.data;
    options.shuffle = arguments.shuffle;
    options.images.random = true;
    options.mixup = arguments.mixup.value_or(0);
    options.share = arguments.validationSplit ? DataOptions::Share::Training : DataOptions::Share::All;
    training = std::make_unique<Dataset>(options, program);
    checkNames(ownNames(program, namesFrom(arguments.classes, program)), training->classNames());
    for (const auto &[target, names] : training->classNames())
      classes[target] = names;
    options.classes = namesOf(program, first, classes);
    knownColumns = training->knownColumns();
    maskValues = training->maskValues().value_or("");
  } else {
    maskValues = arguments.maskValues;
  }
  if (knownColumns.empty())
    knownColumns = arguments.knownColumns;
  options.columns.known = knownColumns; // what is measured and predicted is taken as what was trained on
  options.columns.trains = false;
  options.shuffle = options.images.random = false;
  options.mixup = 0;
  options.padded = true; // each sample counts once
  if (arguments.evaluate || arguments.validationSplit) {
    options.purpose = "evaluation data";
    options.where = arguments.evaluate ? *arguments.evaluate : *arguments.data;
    options.share = arguments.evaluate ? DataOptions::Share::All : DataOptions::Share::Validation;
    evaluation = std::make_unique<Dataset>(options, program);
    classes.merge(evaluation->classNames());
    metrics = std::make_unique<MetricChoice>(program, arguments.metrics);
    metrics->checkRoom(program, evaluation->samples());
    if (arguments.best)
      metrics->find("--best", *arguments.best);
    if (const Schedule schedule(arguments); schedule.plateau())
      metrics->find("--schedule=plateau,metric", schedule.plateau()->metric);
  }
  if (arguments.predict) {
    options.where = *arguments.predict;
    options.purpose = "data to predict";
    options.share = DataOptions::Share::All;
    options.targets = false;
    if (!namesSamples(*arguments.output))
      takeAllRows(options, *arguments.output);
    options.keepSizes = isMaskFolder(*arguments.output);
    prediction = std::make_unique<Dataset>(options, program);
    if (options.keepSizes)
      requireMasks(program, *prediction, maskValues);
  }
  for (const Dataset *data : {training.get(), evaluation.get(), prediction.get()})
    readsTable |= data && data->isTable();
}

void DataSets::tellNotes(const std::function<void(const std::string &line, bool warns)> &tell) const {
  std::set<std::string> told;
  for (const Dataset *data : {training.get(), evaluation.get(), prediction.get()})
    for (const bool warns : {false, true})
      for (const std::string &line : !data ? std::vector<std::string>() : warns ? data->warnings() : data->notes())
        if (told.insert(line).second)
          tell(line, warns);
}

Preparation DataSets::preparation(const Arguments &arguments) const {
  Preparation preparation = preparationOf(arguments, classes);
  preparation.columns = knownColumns;
  preparation.maskValues = maskValues;
  return preparation;
}

} // namespace sluice
