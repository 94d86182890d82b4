// SPDX-License-Identifier: Apache-2.0
// What a run tells about itself and its data: evaluations, the best of them, predictions, progress, TensorBoard's
// files, the report. The tiny program is small enough to compute again here.
#include "runtime/program/RunReport.h"
#include "test/unit/runtime/TinyProgram.h"

#include <cmath>
#include <gmock/gmock.h>
#include <numeric>

using namespace sluice;
using testing::HasSubstr;
using testing::Not;

namespace {

/// What the tiny program does with parameters of a checkpoint, in double.
class Reports : public TinyProgram {
protected:
  std::vector<double> scoresOf(const std::string &checkpoint, size_t sample) const {
    const std::vector<float> weight = tensor(checkpoint, "fc.weight", {3, 8}),
                             bias = tensor(checkpoint, "fc.bias", {3});
    std::vector<double> scores(3);
    for (size_t k = 0; k < 3; ++k) {
      scores[k] = static_cast<double>(bias[k]);
      for (size_t i = 0; i < 8; ++i)
        scores[k] += static_cast<double>(weight[k * 8 + i]) * static_cast<double>(images[sample * 8 + i]);
    }
    return scores;
  }
  std::vector<Json> events(const std::string &event, const std::string &name = "log.jsonl") const {
    std::vector<Json> found;
    for (const Json &line : log(name))
      if (line["event"] == event)
        found.push_back(line);
    return found;
  }
  /// The numbers of a .npy file of 256 bytes of header.
  std::vector<float> predictions(const std::string &name, const std::string &shape) const {
    const std::string bytes = folder.read(name);
    EXPECT_THAT(bytes.substr(0, 256), HasSubstr("{'shape': (" + shape + "), 'descr': '<f4', 'fortran_order': False}"));
    std::vector<float> values((bytes.size() - 256) / 4);
    std::memcpy(values.data(), bytes.data() + 256, values.size() * 4);
    return values;
  }
};

double crossEntropy(const std::vector<double> &scores, int64_t right) {
  double sum = 0;
  for (double score : scores)
    sum += std::exp(score);
  return std::log(sum) - scores[static_cast<size_t>(right)];
}

} // namespace

/// 22 samples in batches of 4: the last two count as all others do.
TEST_F(Reports, EvaluationIsExactOverAllSamples) {
  ASSERT_EQ(run("--data data --steps 30 --lr 0.1 --checkpoint c"), 0) << err;
  ASSERT_EQ(run("--resume c --evaluate data --metrics accuracy,perplexity,confusion --log log.jsonl"), 0) << err;
  double loss = 0;
  int64_t right = 0;
  std::vector<std::vector<int64_t>> counts(3, std::vector<int64_t>(3));
  for (size_t n = 0; n < 22; ++n) {
    const std::vector<double> scores = scoresOf("c/checkpoint.safetensors", n);
    const auto answer = std::max_element(scores.begin(), scores.end()) - scores.begin();
    loss += crossEntropy(scores, labels[n]) / 22;
    right += answer == labels[n];
    ++counts[static_cast<size_t>(labels[n])][static_cast<size_t>(answer)];
  }
  const Json line = events("evaluate").at(0);
  EXPECT_EQ(line["samples"], 22);
  EXPECT_NEAR(line["loss"].get<double>(), loss, 1e-5);
  EXPECT_NEAR(line["perplexity"].get<double>(), std::exp(loss), 1e-4);
  EXPECT_EQ(line["accuracy"], static_cast<double>(right) / 22);
  EXPECT_EQ(line["confusion"], Json(counts));
  EXPECT_THAT(out, HasSubstr("rows: what is right"));
  EXPECT_THAT(out, HasSubstr("on 22 samples"));
}

TEST_F(Reports, ChosenMetricsAndNoOthers) {
  ASSERT_EQ(run("--data data --steps 2 --evaluate data --log log.jsonl"), 0) << err;
  EXPECT_TRUE(events("evaluate").at(0).contains("accuracy"));
  EXPECT_FALSE(events("evaluate").at(0).contains("confusion"));
  ASSERT_EQ(run("--data data --steps 2 --evaluate data --metrics perplexity --log log.jsonl"), 0) << err;
  EXPECT_FALSE(events("evaluate").at(0).contains("accuracy"));
  expectFailure(2, "--data data --evaluate data --metrics mae", "'mae' needs a target of numbers");
  expectFailure(2, "--data data --metrics accuracy", "--metrics needs --evaluate");
}

TEST_F(Reports, FewerSamplesThanABatchAreEvaluatedAndPredicted) {
  ASSERT_EQ(run("--data data --steps 5 --checkpoint c"), 0) << err;
  images.resize(3 * 8);
  labels.resize(3);
  folder.write("data/input.npy", npyArray("<f4", "(3, 2, 2, 2)", images));
  folder.write("data/target.npy", npyArray("<i8", "(3,)", labels));
  ASSERT_EQ(run("--resume c --evaluate data --predict data --output p.npy --log log.jsonl"), 0) << err;
  double loss = 0;
  for (size_t n = 0; n < 3; ++n)
    loss += crossEntropy(scoresOf("c/checkpoint.safetensors", n), labels[n]) / 3;
  EXPECT_NEAR(events("evaluate").at(0)["loss"].get<double>(), loss, 1e-5);
  EXPECT_EQ(predictions("p.npy", "3, 3").size(), 9u);
}

TEST_F(Reports, PredictsAllSamplesInOrderWithoutTargets) {
  ASSERT_EQ(run("--data data --steps 5 --lr 0.1 --checkpoint c"), 0) << err;
  std::filesystem::remove(folder / "data/target.npy");
  ASSERT_EQ(run("--resume c --predict data --output p.npy"), 0) << err;
  const std::vector<float> values = predictions("p.npy", "22, 3");
  ASSERT_EQ(values.size(), 66u);
  for (size_t n = 0; n < 22; ++n)
    for (size_t k = 0; k < 3; ++k)
      EXPECT_NEAR(static_cast<double>(values[n * 3 + k]), scoresOf("c/checkpoint.safetensors", n)[k], 1e-5);
  // Our own predictions may be written over, other arrays not.
  EXPECT_EQ(run("--resume c --predict data --output p.npy"), 0) << err;
  folder.write("other.npy", npyArray("<f4", "(1,)", std::vector<float>(1)));
  expectFailure(1, "--resume c --predict data --output other.npy", "was not written by --output");
  expectFailure(2, "--resume c --predict data --output data/input.npy --force", "which this run reads");
  expectFailure(2, "--resume c --predict data", "--predict needs --output");
  expectFailure(2, "--data data --output p.npy", "--output needs --predict");
}

TEST_F(Reports, EvaluatesEverySoManySteps) {
  ASSERT_EQ(run("--data data --steps 11 --evaluate data --evaluate-every 3 --log log.jsonl"), 0) << err;
  std::vector<int64_t> steps;
  for (const Json &line : events("evaluate"))
    steps.push_back(line["step"]);
  EXPECT_EQ(steps, (std::vector<int64_t>{3, 5, 6, 9, 10, 11})); // after epochs of 5 steps and at the end, too
  ASSERT_EQ(run("--data data --steps 11 --log plain"), 0) << err;
  EXPECT_EQ(losses("plain"), losses("log.jsonl"));
  expectFailure(2, "--data data --evaluate-every 3", "--evaluate-every needs --evaluate");
}

TEST_F(Reports, KeepsTheBestStateAndEndsWhenItGetsNoBetter) {
  // So high a rate overshoots: the loss of the evaluation rises and falls.
  const std::string flags = "--data data --evaluate data --lr 0.7 --momentum 0.95 --checkpoint c --evaluate-every 1 ";
  ASSERT_EQ(run(flags + "--steps 40 --best loss --log log.jsonl"), 0) << err;
  double best = HUGE_VAL;
  int64_t bestStep = 0;
  for (const Json &line : events("evaluate"))
    if (line["loss"] < best) {
      best = line["loss"];
      bestStep = line["step"];
    }
  ASSERT_LT(bestStep, 40);
  const SafetensorsFile kept(folder / "c/best.safetensors");
  EXPECT_EQ(kept.metadata().at("step"), std::to_string(bestStep));
  EXPECT_EQ(kept.metadata().at("best_metric"), "loss");
  double again = 0;
  for (size_t n = 0; n < 22; ++n)
    again += crossEntropy(scoresOf("c/best.safetensors", n), labels[n]) / 22;
  EXPECT_NEAR(again, best, 1e-4 * std::max(1.0, best));

  // Who goes on does not take the first evaluation for the best.
  const std::string former = folder.read("c/best.safetensors");
  const double last = events("evaluate").back()["loss"];
  ASSERT_GT(last, best);
  ASSERT_EQ(run("--data data --evaluate data --lr 0 --checkpoint c --resume c --steps 41 --best loss"), 0) << err;
  EXPECT_EQ(folder.read("c/best.safetensors"), former);

  ASSERT_EQ(run("--data data --evaluate data --evaluate-every 1 --lr 0 --steps 40 --patience 3 --log stopped"), 0)
      << err;
  EXPECT_EQ(losses("stopped").size(), 4u); // the first is the best
  EXPECT_THAT(out, HasSubstr("ended after step 4: loss did not get better than"));
  EXPECT_THAT(out, testing::Not(HasSubstr("what is written")));
  const std::string stops = "--data data --evaluate data --evaluate-every 1 --lr 0 --steps 40 --patience 3 --export "
                            "e.safetensors ";
  ASSERT_EQ(run(stops), 0) << err;
  EXPECT_THAT(out, HasSubstr("what is written has the weights of step 4; the best loss was that of step 1, which was "
                             "not kept: --checkpoint DIR keeps it"));
  ASSERT_EQ(run(stops + "--checkpoint d"), 0) << err;
  EXPECT_THAT(out, HasSubstr("step 1, which --resume=d/best.safetensors brings back"));
  const char *ofProgram = "weights:       those that the program was compiled with";
  EXPECT_THAT(out, testing::Not(HasSubstr(ofProgram)));
  ASSERT_EQ(run("--predict data --output p.npy"), 0) << err;
  EXPECT_THAT(out, HasSubstr(ofProgram));
  ASSERT_EQ(run("--predict data --output p.npy --resume d"), 0) << err;
  EXPECT_THAT(out, testing::Not(HasSubstr(ofProgram)));
  expectFailure(2, "--data data --evaluate data --best accuracy", "--best needs --checkpoint");
  expectFailure(2, "--data data --evaluate data --checkpoint c --best top5", "--best top5: is none of the metrics");
}

TEST_F(Reports, QuietRunsPrintNothingAndLogAll) {
  ASSERT_EQ(run("--data data --steps 3 --evaluate data --quiet --log log.jsonl"), 0) << err;
  EXPECT_EQ(out, "");
  EXPECT_EQ(events("step").size(), 3u);
  ASSERT_EQ(run("--data data --steps 3 --quiet --log /dev/stdout"), 0) << err;
  EXPECT_THAT(out, testing::StartsWith("{\"event\":\"start\""));
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 5);
  expectFailure(1, "--data nowhere --quiet", "cannot open");
  expectFailure(2, "--quiet --plan", "--quiet prints nothing");
}

TEST_F(Reports, TerminalsGetABarOthersPlainLines) {
  ASSERT_EQ(run("--data data --steps 10 --lr 0.25"), 0) << err;
  EXPECT_THAT(out, HasSubstr("step 1/10  epoch 1  loss "));
  EXPECT_THAT(out, HasSubstr("lr 0.25"));
  EXPECT_THAT(out, Not(HasSubstr("\r")));
  ASSERT_EQ(shell("script -qec 'stty cols 140; ./tiny --data data --steps 10 --lr 0.25' /dev/null"), 0) << err;
  EXPECT_THAT(out, HasSubstr("\r[##############################] 10/10  epoch 2  loss "));
  for (const char *part : {" samples/s  left ", "  lr 0.25  ", " MiB"})
    EXPECT_THAT(out, HasSubstr(part));
}

TEST_F(Reports, LogsSamplesPerSecond) {
  ASSERT_EQ(run("--data data --steps 3 --log log.jsonl"), 0) << err;
  for (const Json &line : events("step"))
    EXPECT_NEAR(line["samples_per_second"].get<double>() * line["ms"].get<double>(), 4000, 1e-6);
}

namespace {

Json dataOf(const std::string &page) {
  const std::string begin = "id=data>";
  const size_t from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

/// Titles of the sections, by kind.
std::vector<std::string> titles(const Json &data) {
  std::vector<std::string> found;
  for (const Json &section : data["sections"])
    if (section.contains("title"))
      found.push_back(section["kind"].get<std::string>() + ": " + section["title"].get<std::string>());
  return found;
}

} // namespace

TEST_F(Reports, OnePageOfTheWholeRun) {
  ASSERT_EQ(run("--data data --steps 12 --evaluate data --metrics accuracy,confusion --log log.jsonl --report run.html",
                "offload"),
            0)
      << err;
  const std::string page = folder.read("run.html");
  const Json data = dataOf(page);
  for (const char *title : {"chart: Loss", "chart: Metrics", "chart: Learning rate", "chart: Time of a step",
                            "chart: Device memory within a step", "chart: Memory of the process over the run",
                            "timeline: Streams of one step, as measured", "table: Slowest ops of that step",
                            "table: Tensors", "table: Confusion in the last evaluation"})
    EXPECT_THAT(titles(data), testing::Contains(title));
  for (const Json &section : data["sections"])
    if (section.value("title", "") == "Loss") {
      EXPECT_EQ(section["series"][0]["points"].size(), 3u); // two epochs and the end
      EXPECT_EQ(section["series"][1]["points"].size(), 12u);
      EXPECT_EQ(section["series"][1]["points"][11][1], losses("log.jsonl")[12]);
    } else if (section.value("kind", "") == "timeline") {
      EXPECT_EQ(section["rows"], Json({"compute", "to host", "to device"}));
    }
  const std::string whole = data.dump();
  EXPECT_THAT(whole, HasSubstr("[\"trained by\",\"./tiny --data=data --evaluate=data --steps=12 "
                               "--metrics=accuracy,confusion --log=log.jsonl --report=run.html\"]"));
  // Where the run was best, by the log.
  std::map<std::string, std::pair<double, double>> best; // value, step
  for (const Json &line : events("evaluate"))
    for (const char *metric : {"loss", "accuracy"}) {
      const double value = line[metric], step = line["step"];
      const bool first = !best.count(metric), more = std::string(metric) == "accuracy";
      if (first || (more ? value > best[metric].first : value < best[metric].first))
        best[metric] = {value, step};
    }
  int found = 0;
  for (const Json &section : data["sections"]) {
    if (section.value("title", "") == "Evaluation on 22 samples")
      for (const Json &row : section["rows"]) {
        ++found;
        EXPECT_EQ(std::pair(row[1].get<double>(), row[2].get<double>()), best.at(row[0])) << row;
      }
    if (section.value("title", "") == "Tensors") {
      EXPECT_EQ(section["bytes"], Json({1}));
    }
    if (section.value("title", "") == "Loss") {
      EXPECT_EQ(section["smooth"], true);
    }
    if (section.value("title", "") == "Time of a step") {
      EXPECT_EQ(section["robust"], true);
    }
  }
  EXPECT_EQ(found, 2);
  // Written over by its own kind alone.
  EXPECT_EQ(run("--data data --steps 2 --report run.html"), 0) << err;
  folder.write("notes.html", "<!doctype html>mine");
  expectFailure(1, "--data data --steps 2 --report notes.html", "was not written by --report");
  expectFailure(2, "--evaluate data --report run.html", "--report needs --data");
}

TEST_F(Reports, HostileNamesStayText) {
  ASSERT_EQ(run("--data data --steps 2 --report run.html", "hostile"), 0) << err;
  const std::string page = folder.read("run.html");
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  const std::string title = dataOf(page)["title"]; // what was said is still there
  EXPECT_THAT(title, HasSubstr("</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>"));
  for (const char *reference : {"src=", "href=", "url(", "@import", "<link", "fetch(", "import("})
    EXPECT_THAT(page.substr(0, page.find("id=data>")) + page.substr(page.find("</script>")), Not(HasSubstr(reference)));
}

TEST(ThinnedCurve, KeepsItsShapeInFewPoints) {
  ThinnedCurve curve;
  for (int i = 0; i < 1000000; ++i)
    curve.add(i, 2 * i);
  EXPECT_LT(curve.points().size(), 4000u);
  EXPECT_GT(curve.points().size(), 1500u);
  EXPECT_EQ(curve.points().front().first, 0);
  EXPECT_GT(curve.points().back().first, 999000);
  const double step = curve.points()[1].first;
  for (size_t i = 0; i < curve.points().size(); ++i)
    ASSERT_EQ(curve.points()[i].first, step * static_cast<double>(i));
}
