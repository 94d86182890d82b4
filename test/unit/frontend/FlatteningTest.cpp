// SPDX-License-Identifier: Apache-2.0
// Control flow, sequences and optionals are gone after an import: what they come to, how it is called, and what is
// refused.
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::HasSubstr;

/// x [2, 3] and a parameter w [3, 3], of 0.5 everywhere; `rest` makes y.
onnx::ModelProto modelOf(const std::string &rest, const std::string &y = "2, 3", int opset = 17) {
  auto proto = parseModel("g (float[2, 3] x) => (float[" + y + "] y) {" + rest + "}", opset);
  addInitializer(proto, "w", {3, 3});
  return proto;
}

std::string errorOf(const std::string &rest) { return ImportedModel(modelOf(rest)).error; }

const std::string truth = "t = Constant<value = bool {1}>() ", lie = "t = Constant<value = bool {0}>() ";

TEST(Flattening, BranchOfAKnownCondition) {
  const std::string branches = R"(
    h = MatMul(x, w)
    y = If (t) <then_branch = g1 () => (float[2, 3] a) { a = Relu(h) }, else_branch = g2 () => (float[2, 3] b) { b = Tanh(h) }>)";
  ImportedModel taken(modelOf(truth + branches)), other(modelOf(lie + branches));
  ASSERT_EQ(taken.error, "");
  ASSERT_EQ(other.error, "");
  EXPECT_EQ(taken.ops<train::ReluOp>().size(), 1u);
  EXPECT_EQ(taken.ops<train::TanhOp>().size(), 0u);
  EXPECT_EQ(other.ops<train::ReluOp>().size(), 0u);
  EXPECT_EQ(other.ops<train::TanhOp>().size(), 1u);
  EXPECT_EQ(taken.ops<train::ReluOp>("evaluate").size(), 1u);
}

/// As exports of squeeze write it: the condition follows from a shape that --batch fixes.
TEST(Flattening, ConditionOfAShape) {
  ImportedModel model(modelOf(R"(
    s = Shape(x) zero = Constant<value = int64 {0}>() n = Gather(s, zero)
    two = Constant<value = int64 {2}>() t = Equal(n, two)
    y = If (t) <then_branch = g1 () => (float[2, 3] a) { a = MatMul(x, w) }, else_branch = g2 () => (float[2, 3] b) { b = Hardmax(x) }>)"));
  EXPECT_EQ(model.error, "");
}

TEST(Flattening, LoopsAreUnrolled) {
  auto proto = modelOf(R"(
    n = Constant<value = int64 {3}>() t = Constant<value = bool {1}>() axis = Constant<value = int64[1] {0}>()
    last, all = Loop (n, t, x) <body = b (int64 i, bool c, float[2, 3] h) => (bool c2, float[2, 3] h2, float[2, 3] kept) {
      c2 = Identity(c) p = MatMul(h, w) h2 = Relu(p) kept = Identity(h2) }>
    sum = ReduceSum<keepdims = 0>(all, axis) y = Add(sum, last))");
  ImportedModel unrolled(proto);
  ASSERT_EQ(unrolled.error, "");
  EXPECT_EQ(unrolled.ops<train::ReluOp>().size(), 3u);
  EXPECT_EQ(extents(unrolled.only<train::ConcatOp>().getResult()), std::vector<int64_t>({3, 2, 3}));
  // Names of the body stay where they can, so that logs and plans know them.
  EXPECT_NE(unrolled.variable("w"), nullptr);
}

TEST(Flattening, LoopsEndByTheirCondition) {
  ImportedModel model(modelOf(R"(
    n = Constant<value = int64 {9223372036854775807}>() four = Constant<value = int64 {4}>()
    y = Loop (n, , x) <body = b (int64 i, bool c, float[2, 3] h) => (bool c2, float[2, 3] h2) {
      c2 = Less(i, four) h2 = MatMul(h, w) }>)"));
  ASSERT_EQ(model.error, "");
  EXPECT_EQ(model.ops<train::MatmulOp>().size(), 5u);
}

TEST(Flattening, ScansWalkBothWays) {
  auto scan = [](const std::string &attributes) {
    return ImportedModel(modelOf(R"(
      z = Constant<value = float[3] {0, 0, 0}>()
      last, y = Scan <num_scan_inputs = 1)" +
                                 attributes + R"(, body = b (float[3] s, float[3] row) => (float[3] s2, float[3] out) {
        p = MatMul(row, w) s2 = Add(s, p) out = Tanh(s2) }> (z, x))"))
        .error;
  };
  EXPECT_EQ(scan(""), "");
  EXPECT_EQ(scan(", scan_input_directions = [1], scan_output_directions = [1]"), "");
  EXPECT_THAT(scan(", scan_input_axes = [5]"), HasSubstr("axis 5 is outside rank 2"));
}

TEST(Flattening, SequencesAreNames) {
  ImportedModel model(modelOf(R"(
    a = MatMul(x, w) e = SequenceEmpty() s = SequenceInsert(e, x) s2 = SequenceInsert(s, a) zero = Constant<value = int64 {0}>()
    s3 = SequenceInsert(s2, a, zero) s4 = SequenceErase(s3, zero) n = SequenceLength(s4) one = Constant<value = int64 {1}>()
    at = Sub(n, one) second = SequenceAt(s4, at) j = ConcatFromSequence<axis = 0, new_axis = 1>(s4)
    axis = Constant<value = int64[1] {0}>() m = ReduceSum<keepdims = 0>(j, axis) y = Add(m, second))"));
  ASSERT_EQ(model.error, "");
  EXPECT_EQ(extents(model.only<train::ConcatOp>().getResult()), std::vector<int64_t>({2, 2, 3}));
}

TEST(Flattening, OptionalsAreNames) {
  EXPECT_EQ(errorOf(R"(o = Optional(x) t = OptionalHasElement(o) v = OptionalGetElement(o)
    y = If (t) <then_branch = g1 () => (float[2, 3] a) { a = MatMul(v, w) }, else_branch = g2 () => (float[2, 3] b) { b = Hardmax(x) }>)"),
            "");
}

TEST(Flattening, InitializersOfBodiesAreParameters) {
  auto proto = modelOf(R"(
    n = Constant<value = int64 {3}>() t = Constant<value = bool {1}>()
    y = Loop (n, t, x) <body = b (int64 i, bool c, float[2, 3] h) => (bool c2, float[2, 3] h2) { c2 = Identity(c) h2 = MatMul(h, v) }>)");
  onnx::ModelProto donor;
  addInitializer(donor, "v", {3, 3});
  for (onnx::NodeProto &node : *proto.mutable_graph()->mutable_node())
    if (node.op_type() == "Loop")
      *node.mutable_attribute(0)->mutable_g()->add_initializer() = donor.graph().initializer(0);
  ImportedModel model(proto);
  ASSERT_EQ(model.error, "");
  ASSERT_NE(model.variable("v"), nullptr);
  EXPECT_EQ(model.variable("v").getRole(), train::Role::Parameter);
  EXPECT_EQ(model.ops<train::ReadOp>().size(), 1u) << "the same weight in each trip";
}

TEST(Flattening, WhatIsDataIsRefused) {
  const std::string data = "m = ReduceMax<keepdims = 0>(x) z = Constant<value = float {0}>() t = Greater(m, z) ";
  EXPECT_THAT(errorOf(data + "y = If (t) <then_branch = g1 () => (float[2, 3] a) { a = Relu(x) }, else_branch = g2 () "
                             "=> (float[2, 3] b) { b = Tanh(x) }>"),
              testing::AllOf(HasSubstr("(If, opset 17): its condition 't' is data"), HasSubstr("traced with")));
  EXPECT_THAT(errorOf(data +
                      "n = Constant<value = int64 {3}>() y = Loop (n, t, x) <body = b (int64 i, bool c, float[2, 3] "
                      "h) => (bool c2, float[2, 3] h2) { c2 = Identity(c) h2 = MatMul(h, w) }>"),
              HasSubstr("its condition before trip 0 't' is data"));
  EXPECT_THAT(errorOf("m = ReduceMax<keepdims = 0>(x) s = SequenceConstruct(x, x) y = SequenceAt(s, m)"),
              HasSubstr("its position 'm' is data"));
}

/// Of a model whose node `y` is a loop without a trip count and with this body.
std::string errorOfLoop(const std::string &body, const std::string &count = "") {
  TrainingSpec spec;
  spec.limits.inlinedNodes = 300;
  const std::string known = count.empty() ? "" : "n = Constant<value = int64 {" + count + "}>() ";
  return ImportedModel(modelOf(known + "y = Loop (" + (count.empty() ? "" : "n") +
                               ", , x) <body = b (int64 i, bool c, float[2, 3] h) => (bool c2, float[2, 3] h2) {" +
                               body + "}>"),
                       spec)
      .error;
}

TEST(Flattening, LoopsWithoutEndEnd) {
  const char *never = "never ends: it has no trip count, and its body leaves the condition true";
  EXPECT_THAT(errorOfLoop("c2 = Identity(c) h2 = MatMul(h, w)"),
              testing::AllOf(HasSubstr("node 'y' (Loop"), HasSubstr(never)));
  EXPECT_THAT(errorOfLoop("c2 = Constant<value = bool {1}>() h2 = MatMul(h, w)"), HasSubstr(never));
  const std::string limit =
      "has more than 300 nodes, more than the limit of 300; raise it with --limit inlined-nodes=N";
  EXPECT_THAT(errorOfLoop("c2 = Or(c, c) h2 = MatMul(h, w)"),
              testing::AllOf(HasSubstr("node 'y' (Loop"), HasSubstr(limit)))
      << "a condition that the body computes may end it";
  EXPECT_THAT(
      errorOfLoop(
          R"(c2 = Or(c, c) h2 = Loop ( , c, h) <body = d (int64 j, bool k, float[2, 3] v) => (bool k2, float[2, 3] v2) {
    k2 = Or(k, k) v2 = Relu(v) }>)"),
      testing::AllOf(HasSubstr("node 'y' (Loop"), HasSubstr(limit)))
      << "the outermost loop is named";
}

/// Before the first trip, whatever a trip costs.
TEST(Flattening, TripsAreCountedAhead) {
  const char *empty = "b (int64 i, bool c, float[2, 3] h) => (bool c, float[2, 3] h) {}>";
  for (const char *count : {"301", "10000000", "9223372036854775806"}) {
    TrainingSpec spec;
    spec.limits.inlinedNodes = 300;
    const std::string loop = std::string("n = Constant<value = int64 {") + count + "}>() y = Loop (n, , x) <body = ";
    EXPECT_THAT(ImportedModel(modelOf(loop + empty), spec).error,
                HasSubstr(std::string("has ") + count +
                          " trips through a body of 0 nodes, more than the limit of 300; "
                          "raise it with --limit inlined-nodes=N"));
  }
  EXPECT_EQ(errorOfLoop("c2 = Identity(c) h2 = Tanh(h)", "90"), "");
  EXPECT_THAT(errorOfLoop("c2 = Identity(c) h2 = Tanh(h)", "100"),
              HasSubstr("has 100 trips through a body of 2 nodes"));
  EXPECT_THAT(errorOfLoop("c2 = Constant<value = bool {1}>() h2 = Tanh(h)", "100"), HasSubstr("has 100 trips"));
  EXPECT_EQ(errorOfLoop("c2 = Constant<value = bool {0}>() h2 = Tanh(h)", "10000000"), "") << "it ends after one trip";
}

/// A Scan has as many trips as what it goes along is long, whatever a trip costs.
TEST(Flattening, ScansAreCountedAhead) {
  for (const char *body : {"{ h2 = Add(h, e) }", "{ h2 = Identity(h) }"}) {
    auto proto = parseModel(std::string(R"(g (float[2, 3] x, float[2, 2147483647] s) => (float[2, 3] y) {
      z = Constant<value = float[2] {0.0, 0.0}>() axis = Constant<value = int64[1] {1}>()
      last = Scan (z, s) <num_scan_inputs = 1, scan_input_axes = [1],
        body = b (float[2] h, float[2] e) => (float[2] h2) )") +
                            body + "> column = Unsqueeze(last, axis) m = MatMul(x, w) y = Add(m, column) }");
    addInitializer(proto, "w", {3, 3});
    EXPECT_THAT(ImportedModel(proto).error, HasSubstr("has 2147483647 trips through a body of 1 nodes, more than the"));
  }
}

/// What a body passes on costs time for each trip, without a node: sequences, also in optionals, and what is kept of
/// each trip.
TEST(Flattening, ValuesThatBodiesPassOnAreCounted) {
  TrainingSpec spec;
  spec.limits.inlinedNodes = 300;
  std::string many = "s0 = SequenceEmpty() ";
  for (int i = 0; i < 60; ++i)
    many += "s" + std::to_string(i + 1) + " = SequenceInsert(s" + std::to_string(i) + ", x) ";
  const std::string trips = "n = Constant<value = int64 {100}>() t = Constant<value = bool {1}>() ";
  const auto errorOfCarried = [&](const std::string &value, const std::string &type) {
    return ImportedModel(modelOf(many + trips + "o = Optional(s60) k, y = Loop (n, t, " + value +
                                 ", x) <body = b (int64 i, bool c, " + type + " q, float[2, 3] h) => (bool c, " + type +
                                 " q, float[2, 3] h) {}>"),
                         spec)
        .error;
  };
  const char *counted = "values that go into bodies or come out, more than the limit of 3000";
  EXPECT_THAT(errorOfCarried("s60", "seq(float[2, 3])"), HasSubstr(counted));
  EXPECT_THAT(errorOfCarried("o", "optional(seq(float[2, 3]))"), HasSubstr(counted));

  std::string kept, types;
  for (int i = 0; i < 40; ++i)
    kept += ", k" + std::to_string(i), types += ", float[2, 3] h";
  EXPECT_THAT(ImportedModel(modelOf(trips + "y" + kept +
                                    " = Loop (n, t, x) <body = b (int64 i, bool c, float[2, 3] h) => (bool c, "
                                    "float[2, 3] h" +
                                    types + ") {}>"),
                            spec)
                  .error,
              HasSubstr(counted));
}

/// Few nodes may be large: those of 16 MiB here.
TEST(Flattening, BytesOfCopiesAreCounted) {
  auto proto = modelOf(R"(n = Constant<value = int64 {20}>() t = Constant<value = bool {1}>()
    y = Loop (n, t, x) <body = b (int64 i, bool c, float[2, 3] h) => (bool c2, float[2, 3] h2) {
      c2 = Identity(c) h2 = MatMul(h, w) }>)");
  for (onnx::NodeProto &node : *proto.mutable_graph()->mutable_node())
    if (node.op_type() == "Loop")
      node.mutable_attribute(0)->mutable_g()->mutable_node(1)->set_doc_string(std::string(1 << 24, 'x'));
  EXPECT_THAT(ImportedModel(proto).error,
              testing::AllOf(HasSubstr("control flow, unrolled as far as here, has nodes of 268"),
                             HasSubstr("bytes, more than 268435456; export constants outside of them")));
}

TEST(Flattening, PositionsAreWithinTheSequence) {
  EXPECT_THAT(errorOf("s = SequenceEmpty() z = Constant<value = int64 {7}>() a = SequenceAt(s, z) y = Add(x, a)"),
              HasSubstr("position 7 is outside a sequence of 0 tensors"));
  EXPECT_THAT(errorOf("s = SequenceEmpty() a = ConcatFromSequence<axis = 0>(s) y = Add(x, a)"),
              HasSubstr("its sequence is empty"));
}

TEST(Flattening, BodiesThatDoNotFit) {
  EXPECT_THAT(errorOf(truth +
                      "y = If (t) <then_branch = g1 () => (float[2, 3] gone) { a = Relu(x) }, else_branch = g2 () => "
                      "(float[2, 3] b) { b = Tanh(x) }>"),
              HasSubstr("graph output 'gone' is not an output of any node"));
  EXPECT_THAT(
      errorOf(
          "n = Constant<value = int64 {3}>() y = Loop (n, , x) <body = b (int64 i, bool c) => (bool c2, float[2, 3] "
          "h2) { c2 = Identity(c) h2 = Relu(x) }>"),
      HasSubstr("its body has 2 inputs for 3 values"));
}

/// A name of a body hides none of the graph, nor of another trip.
TEST(Flattening, NamesStayApart) {
  ImportedModel model(modelOf(R"(
    h = MatMul(x, w) n = Constant<value = int64 {2}>() t = Constant<value = bool {1}>()
    k = Loop (n, t, x) <body = b (int64 i, bool c, float[2, 3] v) => (bool c2, float[2, 3] v2) {
      c2 = Identity(c) q = MatMul(v, w) v2 = Tanh(q) }>
    q = Relu(h) y = Add(q, k))"));
  ASSERT_EQ(model.error, "");
  EXPECT_EQ(model.ops<train::TanhOp>().size(), 2u);
  EXPECT_EQ(model.ops<train::ReluOp>().size(), 1u);
}

/// One file, imported for two batches, has loops of two lengths.
TEST(Flattening, EachImportTakesApartAnew) {
  auto proto = parseModel(R"(g (float[n, 3] x) => (float[n, 3] y) {
    s = Shape(x) zero = Constant<value = int64 {0}>() n = Gather(s, zero)
    y = Loop (n, , x) <body = b (int64 i, bool c, float[n, 3] h) => (bool c2, float[n, 3] h2) { c2 = Identity(c) h2 = MatMul(h, w) }> })");
  addInitializer(proto, "w", {3, 3});
  TemporaryFolder folder;
  Result<OnnxFile> file = OnnxFile::read(folder.write(proto));
  ASSERT_TRUE(file) << file.error();
  for (int64_t batch : {2, 4, 3}) {
    mlir::MLIRContext context;
    TrainingSpec spec;
    spec.batch = batch;
    auto module = importOnnx(context, *file, spec);
    ASSERT_TRUE(module) << module.error();
    auto step = (*module)->lookupSymbol<mlir::func::FuncOp>("step");
    EXPECT_EQ(std::distance(step.getOps<train::MatmulOp>().begin(), step.getOps<train::MatmulOp>().end()), batch);
  }
}

/// The ONNX library's inference divides by the number.
TEST(Flattening, PartsOfNoElementsAreRefused) {
  EXPECT_NE(errorOf("h = MatMul(x, w) n = Constant<value = int64 {0}>() s = SplitToSequence<axis = 1>(h, n)"
                    " at = Constant<value = int64 {0}>() y = SequenceAt(s, at)"),
            "");
}

/// The ONNX library infers shapes before it puts functions in their callers' places.
TEST(Flattening, OneHotsWithoutADepthOrBesideTheirAxesAreRefused) {
  for (const char *node :
       {"OneHot(h, none, v)", "OneHot <axis = 7> (h, three, v)", "OneHot <axis = -8> (h, three, v)"}) {
    auto proto =
        parseModel("g (float[n, 3] x) => (float[n, 3] y) { h = MatMul(x, w) none = Constant<value = int64[0] {}>()"
                   " three = Constant<value = int64 {3}>() v = Constant<value = float[2] {0, 1}>() o = " +
                   std::string(node) + " y = f.same(o) }");
    addInitializer(proto, "w", {3, 3});
    auto *import = proto.add_opset_import();
    import->set_domain("f");
    import->set_version(1);
    onnx::FunctionProto &same = *proto.add_functions();
    same.set_name("same");
    same.set_domain("f");
    *same.add_opset_import() = proto.opset_import(0);
    same.add_input("a");
    same.add_output("b");
    onnx::NodeProto &body = *same.add_node();
    body.set_op_type("Identity");
    body.add_input("a");
    body.add_output("b");
    TemporaryFolder folder;
    Result<OnnxFile> file = OnnxFile::read(folder.write(proto));
    mlir::MLIRContext context;
    TrainingSpec spec;
    spec.batch = 2;
    EXPECT_FALSE(file && importOnnx(context, *file, spec)) << node;
  }
}

} // namespace
} // namespace sluice
