// SPDX-License-Identifier: Apache-2.0
// Sections of the page: facts, curves, memory as planned and as measured, a timeline of one step, actions, tensors.

#include "runtime/program/RunReport.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"
#include "runtime/files/OutputFile.h"
#include "runtime/program/ClassNames.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace sluice {

static constexpr double mebibyte = 1048576.0;

void ThinnedCurve::add(double x, double y) {
  if (seen++ % stride != 0)
    return;
  kept.push_back({x, y});
  if (kept.size() < most)
    return;
  for (size_t i = 0; i < kept.size() / 2; ++i)
    kept[i] = kept[2 * i];
  kept.resize(kept.size() / 2);
  stride *= 2;
}

std::vector<std::pair<std::string, double>> StepFacts::scalars() const {
  std::vector<std::pair<std::string, double>> all;
  if (!isOfTurn)
    all.emplace_back("train/loss", loss);
  all.insert(all.end(), {{"train/lr", learningRate}, {"train/samples_per_second", samplesPerSecond}});
  for (const auto &[name, value] : parts)
    all.emplace_back("train/" + name, value);
  return all;
}

void RunReport::addStep(const StepFacts &facts) {
  const double step = static_cast<double>(facts.step);
  if (!facts.isOfTurn)
    loss.add(step, facts.loss);
  for (const auto &[name, value] : facts.parts)
    parts[name].add(step, value);
  learningRate.add(step, facts.learningRate);
  milliseconds.add(step, facts.seconds * 1e3);
  resident.add(step, static_cast<double>(residentNow()) / mebibyte);
}

void RunReport::addEvaluation(int64_t step, const Evaluation &result) {
  for (const auto &[metric, value] : result.values)
    evaluated[metric].push_back({static_cast<double>(step), value});
  confusions = result.confusions;
  hits = result.hits;
  evaluatedSamples = result.samples;
}

static std::string number(const char *format, double value) {
  char out[48];
  std::snprintf(out, sizeof out, format, value);
  return out;
}

void RunReport::addFacts(Report &report, const Program &program, const Session &session, const std::string &command,
                         const ClassNames &classes, const StepTimes &times) const {
  std::vector<std::pair<std::string, std::string>> rows = {
      {"compiled by", program.commandLine},
      {"trained by", command},
      {"strategy", program.strategy},
      {"device memory", text(sizeText(program.deviceBytes), " planned, ", sizeText(session.peak(Space::Device)),
                             " touched, ", sizeText(program.deviceBase), " live all the time")},
      {"host memory", text(sizeText(program.hostBytes), " planned, ", sizeText(session.peak(Space::Host)), " touched")},
      {"whole process", sizeText(residentPeak()) + " resident at most"}};
  if (const size_t bytes = program.others.storage)
    rows.push_back(
        {"storage", text(sizeText(bytes), " planned, ", sizeText(session.peak(Space::Storage)), " touched")});
  const std::vector<int> targets = namedTargets(program);
  for (const int target : targets)
    if (const std::vector<std::string> names = namesOf(program, target, classes); !names.empty())
      rows.push_back({targets.size() > 1 ? text("classes of ", program.inputs[target].name) : "classes",
                      text(names.size(), ": ", someOf(names))});
  if (!times.seconds.empty())
    rows.push_back({"a step", text(number("%.4g", times.median() * 1e3), " ms (median of ", times.seconds.size(),
                                   "), predicted ", number("%.4g", times.predicted(program) * 1e3), " ms; ",
                                   number("%.4g", times.samplesPerSecond(program)), " samples/s in ",
                                   times.batches > 1 ? text(times.batches, " batches a step of ") : "batches of ",
                                   program.batch)});
  report.facts(rows);
}

static std::string titled(const char *title, const std::string &output) {
  return output.empty() ? title : text(title, ": ", output);
}

/// Where the run stands, and where it was best.
void RunReport::addEvaluations(Report &report, const Program &program, const ClassNames &all) const {
  if (evaluated.empty())
    return;
  ReportTable table(text("Evaluation on ", evaluatedSamples, " samples"),
                    {"metric", "best", "at step", "last", "last step"}, 4);
  for (const auto &[measure, points] : evaluated) {
    const bool more = moreIsBetter(measure.metric);
    const auto isWorse = [more](const auto &a, const auto &b) {
      return more ? a.second < b.second : a.second > b.second;
    };
    const auto &best = *std::max_element(points.begin(), points.end(), isWorse);
    table.add({measure.name(), best.second, best.first, points.back().second, points.back().first});
  }
  report.add(table.json);
  for (const auto &[label, ofClasses] : hits) {
    ReportTable each(titled("Classes in the last evaluation", label),
                     {"class", "there", "answered", "precision", "recall", "F1", "IoU"});
    const std::vector<std::string> classes = namesFor(program, label, all);
    for (size_t k = 0; k < ofClasses.size(); ++k) {
      const Hits &own = ofClasses[k];
      each.add({className(classes, k), own.there, own.answered, own.precision(), own.recall(), own.f1(), own.iou()});
    }
    report.add(each.json);
  }
}

void RunReport::addConfusions(Report &report, const Program &program, const ClassNames &all) const {
  for (const auto &[label, confusion] : confusions) {
    const std::vector<std::string> classes = namesFor(program, label, all);
    std::vector<std::string> columns = {"right \\ answered"};
    for (size_t k = 0; k < confusion.size(); ++k)
      columns.push_back(className(classes, k));
    ReportTable table(titled("Confusion in the last evaluation", label), columns, 0);
    for (size_t k = 0; k < confusion.size(); ++k) {
      std::vector<ReportJson> cells = {className(classes, k)};
      cells.insert(cells.end(), confusion[k].begin(), confusion[k].end());
      table.add(std::move(cells));
    }
    report.add(table.json);
  }
}

void RunReport::addCurves(Report &report, double predicted) const {
  report.heading("Training");
  ReportChart losses("Loss", "step", "loss");
  if (const auto found = evaluated.find(Metric::Loss); found != evaluated.end())
    losses.add("evaluation", found->second); // the first lies on top
  if (!loss.points().empty() || parts.empty())
    losses.add("training", loss.points());
  for (const auto &[name, curve] : parts)
    losses.add("training: " + name, curve.points());
  ReportChart shares("Metrics", "step", "share");
  std::vector<ReportChart> others;
  for (const auto &[measure, points] : evaluated)
    if (moreIsBetter(measure.metric))
      shares.add(measure.name(), points);
    else if (!(measure == Metric::Loss))
      others.push_back(ReportChart(measure.name(), "step", measure.name()).add("evaluation", points));
  for (const ReportChart &chart : {losses.cutOutliers().smoothed(), shares})
    if (!chart.isEmpty())
      report.add(chart.json);
  for (const ReportChart &chart : others)
    report.add(chart.json);
  if (learningRate.points().empty())
    return;
  report.add(ReportChart("Learning rate", "step", "rate").fromZero().add("rate", learningRate.points()).json);
  const ReportPoints &times = milliseconds.points();
  report.add(ReportChart("Time of a step", "step", "ms")
                 .fromZero()
                 .cutOutliers()
                 .add("measured", times)
                 .add("predicted", {{times.front().first, predicted * 1e3}, {times.back().first, predicted * 1e3}},
                      ReportLine::Dashed)
                 .json);
}

/// Bytes of the device arena in use in each position of a step, without those that live all the time.
static std::vector<int64_t> plannedBytes(const Program &program) {
  int last = 0;
  for (int i = 0; i < program.planRows; ++i)
    last = std::max(last, program.plan[i].lastStep);
  std::vector<int64_t> live(static_cast<size_t>(last) + 2);
  for (int i = 0; i < program.planRows; ++i)
    if (const PlanRow &row = program.plan[i]; !row.host) {
      live[static_cast<size_t>(row.firstStep)] += row.bytes;
      live[static_cast<size_t>(row.lastStep) + 1] -= row.bytes;
    }
  for (size_t i = 1; i < live.size(); ++i)
    live[i] += live[i - 1];
  live.pop_back();
  return live;
}

void RunReport::addMemory(Report &report, const Program &program, const Session &session) const {
  report.heading("Memory");
  const double base = static_cast<double>(program.deviceBase) / mebibyte,
               arena = static_cast<double>(program.deviceBytes) / mebibyte,
               touched = static_cast<double>(session.peak(Space::Device)) / mebibyte;
  const std::vector<int64_t> live = plannedBytes(program);
  const double end = static_cast<double>(live.size());
  ReportPoints points;
  for (size_t i = 0; i < live.size(); ++i)
    for (double edge : {0.0, 1.0})
      points.push_back({static_cast<double>(i) + edge, base + static_cast<double>(live[i]) / mebibyte});
  report.add(ReportChart("Device memory within a step", "kernel or copy of the step", "MiB")
                 .fromZero()
                 .add("live all the time", {{0, base}, {end, base}}, ReportLine::Ground)
                 .add("live, as planned", points, ReportLine::Filled)
                 .add("touched at most, as measured", {{0, touched}, {end, touched}})
                 .add("arena", {{0, arena}, {end, arena}}, ReportLine::Dashed)
                 .json);
  if (resident.points().empty())
    return;
  const double planned =
      static_cast<double>(program.hostBytes) / mebibyte + (runtimeTarget() == Target::Host ? arena : 0);
  const double first = resident.points().front().first, last = resident.points().back().first;
  report.add(ReportChart("Memory of the process over the run", "step", "MiB")
                 .fromZero()
                 .add("resident, as measured", resident.points(), ReportLine::Filled)
                 .add("its arenas, as planned", {{first, planned}, {last, planned}}, ReportLine::Dashed)
                 .json);
}

void RunReport::addTimeline(Report &report) const {
  if (timeline.empty())
    return;
  std::map<StreamId, int> rowOf;
  double begin = timeline.front().start;
  for (const OpRecord &record : timeline) {
    begin = std::min(begin, record.start);
    rowOf[record.stream];
  }
  std::vector<std::string> rows;
  for (auto &[stream, row] : rowOf) {
    row = static_cast<int>(rows.size());
    rows.push_back(factsOf(stream).label);
  }
  ReportTimeline chart("Streams of one step, as measured", "ms", rows, {"kernel", "copy", "codec", "update"});
  std::map<std::pair<std::string, std::string>, std::pair<int, double>> sums;
  for (const OpRecord &record : timeline) {
    chart.add(rowOf[record.stream], static_cast<int>(factsOf(record.node.role).shown), (record.start - begin) * 1e3,
              (record.end - begin) * 1e3, text(nameOf(record.node), ": ", record.op));
    auto &[calls, seconds] = sums[{nameOf(record.node), record.op}];
    ++calls;
    seconds += record.end - record.start;
  }
  report.heading("Time");
  report.add(chart.json);
  std::vector<std::pair<double, const decltype(sums)::value_type *>> slowest;
  for (const auto &sum : sums)
    slowest.push_back({-sum.second.second, &sum});
  std::sort(slowest.begin(), slowest.end());
  ReportTable table("Slowest ops of that step", {"node", "op", "calls", "ms"}, 4);
  for (size_t i = 0; i < std::min<size_t>(50, slowest.size()); ++i) {
    const auto &[name, sum] = *slowest[i].second;
    table.add({name.first, name.second, sum.first, sum.second * 1e3});
  }
  report.add(table.json);
}

static void addPlan(Report &report, const Program &program, const std::vector<MeasuredAction> &actions) {
  report.heading("Plan");
  ReportTable costs("Actions, a step", {"action", "tensors", "bytes", "bytes moved", "predicted ms", "measured ms"});
  costs.bytes({2, 3});
  for (const MeasuredAction &measured : actions)
    costs.add({measured.row->action, measured.row->tensors, measured.row->bytes, measured.movedBytes,
               measured.predictedSeconds * 1e3, measured.seconds * 1e3});
  if (actions.empty())
    report.text("The plan keeps everything on the device.");
  else
    report.add(costs.json);
  ReportTable tensors("Tensors", {"tensor", "bytes", "memory", "from", "to", "action", "node"}, 0);
  tensors.bytes({1});
  for (int i = 0; i < program.planRows; ++i) {
    const PlanRow &row = program.plan[i];
    tensors.add(
        {row.tensor, row.bytes, row.host ? "host" : "device", row.firstStep, row.lastStep, row.action, row.node});
  }
  report.add(tensors.json);
}

void RunReport::write(const std::string &path, const Program &program, const Session &session,
                      const std::string &command, const ClassNames &classes, const StepTimes &times,
                      const std::vector<MeasuredAction> &actions) const {
  Report report(text("Training of ", program.model));
  addFacts(report, program, session, command, classes, times);
  addEvaluations(report, program, classes);
  addCurves(report, times.predicted(program));
  addConfusions(report, program, classes);
  addMemory(report, program, session);
  addTimeline(report);
  addPlan(report, program, actions);
  const std::string page = report.page();
  OutputFile file(path);
  file.write(page.data(), page.size());
  file.commit();
}

} // namespace sluice
