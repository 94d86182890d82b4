// SPDX-License-Identifier: Apache-2.0
// One import tells all that is not supported: every op once, and nothing that is refused only for what stands before
// it.
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Refused {
  std::string error;
  std::vector<std::string> notes;

  explicit Refused(onnx::ModelProto proto) {
    addInitializer(proto, "w", {4, 3});
    TemporaryFolder folder;
    Result<OnnxFile> file = OnnxFile::read(folder.write(proto));
    EXPECT_TRUE(file) << file.error();
    mlir::MLIRContext context;
    ImportReport report;
    auto module = importOnnx(context, *file, TrainingSpec(), &report);
    notes = report.notes;
    EXPECT_FALSE(module);
    if (!module)
      error = module.error();
  }
  explicit Refused(const std::string &graph) : Refused(parseModel(graph)) {}
};

TEST(Refusals, AllKindsWithCounts) {
  Refused model(R"(g (float[2, 3] x) => (float[2, 4] y) {
    a = EyeLike(x)
    b = EyeLike(a)
    c = GlobalLpPool(b)
    d = LayerNormalization<axis = 7>(c, w)
    y = Gemm<transB = 1>(d, w)
  })");
  EXPECT_THAT(model.error, HasSubstr("model.onnx: 4 nodes of 5 cannot be imported, of 3 ops"));
  EXPECT_THAT(
      model.notes,
      ElementsAre(HasSubstr("node 'a' (EyeLike, opset 17) and 1 more: this op is not supported; write it with ops"),
                  HasSubstr("node 'c' (GlobalLpPool, opset 17): this op is not supported; write it with ops that "
                            "docs/reference/coverage.md lists"),
                  HasSubstr("node 'd' (LayerNormalization, opset 17): axis 7 is outside rank 2")));
}

/// The library's inference of OneHot reads the type of every operand, a random draw's too, of which nothing is known.
TEST(Refusals, OperandsOfWhichNothingIsKnown) {
  Refused model(R"(g (float[2, 3] x) => (float[2, 4] y) {
    r = RandomUniformLike(x)
    o = OneHot(x, r, x)
    y = Gemm<transB = 1>(o, w)
  })");
  EXPECT_THAT(model.error, HasSubstr("(OneHot, opset 17)"));
}

TEST(Refusals, OneNodeIsTheError) {
  Refused model("g (float[2, 3] x) => (float[2, 4] y) { a = EyeLike(x) y = Gemm<transB = 1>(a, w) }");
  EXPECT_THAT(model.error, HasSubstr("model.onnx: node 'a' (EyeLike, opset 17): this op is not supported"));
  EXPECT_THAT(model.notes, IsEmpty());
}

TEST(Refusals, ShapesBehindARefusedNodeAreThoseOfItsSchema) {
  Refused model("g (float[2, 3] x) => (float[2, 4] y) { a = EyeLike(x) y = Gemm(a, w) }");
  EXPECT_THAT(model.notes, ElementsAre(HasSubstr("(EyeLike"), HasSubstr("node 'y' (Gemm")))
      << "[2, 3] by [4, 3] is no product, whatever values it has";
}

TEST(Refusals, NothingIsBlamedForWhatStandsBeforeIt) {
  Refused model(R"(g (float[2, 3] x) => (float y) {
    i = NonZero(x)
    m0 = ReduceMean<keepdims = 0>(x)
    f = Cast<to = 1>(i)
    a = GlobalLpPool(m0)
    c = Clip(x, a)
    z = Add(f, c)
    y = ReduceMean<keepdims = 0>(z)
  })");
  EXPECT_THAT(model.notes, ElementsAre(HasSubstr("(NonZero"), HasSubstr("(GlobalLpPool"),
                                       HasSubstr("4 nodes behind these could not be looked at")));
}

TEST(Refusals, AnyNumberOfKindsIsShort) {
  std::string nodes = "a0 = EyeLike(x) ";
  for (int i = 0; i < 40; ++i) {
    const std::string from = std::to_string(i), to = std::to_string(i + 1);
    nodes += "a" + to + " = Foo" + to + "(a" + from + ") ";
  }
  auto proto = parseModel("g (float[2, 3] x) => (float[2, 3] y) { " + nodes + "y = Relu(a40) }");
  for (auto &node : *proto.mutable_graph()->mutable_node())
    if (node.op_type().rfind("Foo", 0) == 0) {
      node.set_domain("company" + node.op_type() + std::string(5000, 'x'));
      *node.mutable_input(0) = "x";
      onnx::OperatorSetIdProto *opset = proto.add_opset_import();
      opset->set_domain(node.domain());
      opset->set_version(1);
    }
  // Live, so that all are looked at.
  onnx::NodeProto *sum = proto.mutable_graph()->mutable_node(proto.graph().node_size() - 1);
  sum->set_op_type("Sum");
  for (int i = 0; i < 40; ++i)
    sum->add_input("a" + std::to_string(i));
  Refused model(proto);
  EXPECT_THAT(model.error, HasSubstr("41 nodes of 42 cannot be imported, of 41 ops"));
  ASSERT_THAT(model.notes, SizeIs(18));
  EXPECT_THAT(model.notes[16], HasSubstr("25 refused nodes more, for other reasons than the 16 above"));
  EXPECT_THAT(model.notes[17], HasSubstr("1 node behind these could not be looked at"));
  for (const std::string &note : model.notes)
    EXPECT_LT(note.size(), 1000u);
  EXPECT_THAT(model.notes[1], HasSubstr("give the model a function of this name"));
}

/// What is known of results of refused nodes is inferred; counts in the model must not decide what memory that takes.
TEST(Refusals, NumbersThatNothingLimits) {
  EXPECT_THAT(
      Refused(parseModel("g (float[3, 2] x) => (float y) { a, y = Split<num_outputs = 35184372088833>(x) }", 18)).error,
      HasSubstr("(Split, opset 18): has 2 outputs, num_outputs is 35184372088833"));
  // A product of a result that is refused, whose rows are more than a tensor may have.
  EXPECT_THAT(
      Refused(parseModel("g (float[4, 2] x) => (float[4, 3] y) "
                         "{ s = Constant<value_ints = [4, 1000000007, 2]>() r = Reshape(x, s) y = MatMul(r, w) }"))
          .error,
      HasSubstr("2 nodes of 3 cannot be imported"));
}

} // namespace
} // namespace sluice
