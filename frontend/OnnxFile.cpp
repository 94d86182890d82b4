// SPDX-License-Identifier: Apache-2.0
// Reading in this order: parse, index tensor data, check, widen floats, inline. The ONNX library reports by exceptions;
// they end here.
#include "frontend/OnnxFile.h"
#include "frontend/ElementTypes.h"
#include "frontend/ExternalData.h"
#include "frontend/FloatWidening.h"
#include "frontend/GraphNames.h"
#include "frontend/GuardedSchemas.h"
#include "frontend/ImportedOps.h"
#include "frontend/LocalFunctions.h"
#include "frontend/NodeWalk.h"
#include "frontend/Refusals.h"
#include "frontend/StoredForms.h"
#include "frontend/TensorIndex.h"
#include "frontend/TypeRules.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/stubs/logging.h"
#include "onnx/checker.h"
#include "onnx/inliner/inliner.h"
#include "onnx/onnx_pb.h"
#include <algorithm>
#include <cctype>
#include <exception>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

namespace sluice {

struct OnnxFile::Contents {
  explicit Contents(const std::string &path) : path(path), tensors(path) {}
  std::string path;
  onnx::ModelProto model;
  TensorIndex tensors;
  int64_t opset = 0;
  // As they were read, while others stand in the model.
  bool replaced = false;
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> outputs;
  int initializers = 0; ///< of the file; others are after them
  StoredForms forms;
};

namespace {

constexpr int64_t oldestOpset = 7, newestOpset = 24;

/// The library's messages span lines, start with capitals and end with full stops; ours do not.
std::string oneLine(const std::string &text) {
  std::string line;
  for (char c : text) {
    bool space = std::isspace(static_cast<unsigned char>(c));
    if (space && (line.empty() || line.back() == ' '))
      continue;
    line += space ? ' ' : c;
  }
  while (!line.empty() && (line.back() == ' ' || line.back() == '.'))
    line.pop_back();
  if (line.size() > 1 && !std::isupper(static_cast<unsigned char>(line[1])))
    line[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(line[0])));
  return line;
}

/// Runs a step of the ONNX library and turns what it throws into an error.
template <typename Step> Status guarded(const char *doing, Step step) {
  try {
    step();
    return Success{};
  } catch (const std::exception &failure) {
    return Error{std::string(doing) + ": " + oneLine(failure.what())};
  }
}

Status parse(const std::string &path, onnx::ModelProto &model) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  constexpr size_t limit = std::numeric_limits<int>::max();
  if (file->bytes().size() > limit)
    return Error{"file has " + std::to_string(file->bytes().size()) + " bytes, more than the " + std::to_string(limit) +
                 " that an ONNX file can hold; keep its weights as external data"};
  // Protobuf would print parse errors on stderr.
  google::protobuf::SetLogHandler(nullptr);
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(file->bytes().data()),
                                                static_cast<int>(file->bytes().size()));
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  if (!model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return Error{"not an ONNX model: cut short or of another format"};
  if (!model.has_graph() || model.graph().node_size() == 0)
    return Error{"the model's graph has no nodes"};
  return Success{};
}

Result<int64_t> defaultOpset(const onnx::ModelProto &model) {
  int64_t opset = 0;
  for (const auto &import : model.opset_import())
    if (import.domain().empty() || import.domain() == "ai.onnx")
      opset = import.version();
  if (opset < oldestOpset || opset > newestOpset)
    return Error{"opset " + std::to_string(opset) + " is not among " + std::to_string(oldestOpset) + " to " +
                 std::to_string(newestOpset) + "; convert the model with onnx.version_converter"};
  return opset;
}

/// As onnx::checker::check_model, but external data is found without reading the file again, and a file that says a
/// newer IR version than the library's is held to the rules of the newest one known: operators are versioned by the
/// opset, which has been checked.
Status check(const std::string &path, const onnx::ModelProto &model, int64_t opset) {
  if (const auto unknown = unknownOp(model.graph(), opset))
    return Error{*unknown};
  return guarded("invalid model", [&] {
    onnx::checker::CheckerContext context;
    context.set_ir_version(static_cast<int>(std::min<int64_t>(model.ir_version(), onnx::Version::IR_VERSION)));
    context.set_model_dir(std::filesystem::path(path).parent_path().string());
    std::unordered_map<std::string, int> opsets;
    for (const auto &import : model.opset_import())
      opsets[import.domain()] = static_cast<int>(import.version());
    context.set_opset_imports(opsets);
    const onnx::checker::LexicalScopeContext scope;
    onnx::checker::check_graph(model.graph(), context, scope);
    onnx::checker::check_model_local_functions(model, context, scope);
  });
}

/// Ops of the standard that have no importer of their own; those that are compositions of others are inlined.
class ForeignOps : public onnx::inliner::FunctionIdSet {
public:
  explicit ForeignOps(const onnx::GraphProto &graph) {
    forEachNode(graph.node(), [&](const onnx::NodeProto &node) {
      if ((node.domain().empty() || node.domain() == "ai.onnx") && !isImportedOp(node.op_type()))
        names.insert(node.op_type());
    });
  }
  bool Contains(const std::string &domain, const std::string &name) const override {
    return (domain.empty() || domain == "ai.onnx") && names.count(name);
  }
  std::set<std::string> names;
};

/// Bodies refer to attributes by name; the library does not fill in those that a node leaves to their defaults.
void addDefaultAttributes(onnx::GraphProto &graph, const ForeignOps &foreign, int64_t opset) {
  for (auto &node : *graph.mutable_node()) {
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        addDefaultAttributes(*attribute.mutable_g(), foreign, opset);
    const onnx::OpSchema *schema = foreign.Contains(node.domain(), node.op_type())
                                       ? onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(opset), "")
                                       : nullptr;
    if (!schema)
      continue;
    std::set<std::string> given;
    for (const auto &attribute : node.attribute())
      given.insert(attribute.name());
    for (const auto &[name, attribute] : schema->attributes())
      if (!given.count(name) && attribute.default_value.has_type())
        *node.add_attribute() = attribute.default_value;
  }
}

/// The library infers the types of the whole graph for every node whose body depends on them.
Status checkInferences(const onnx::GraphProto &graph, const ForeignOps &foreign, int64_t opset) {
  constexpr int64_t most = 2'000'000; // nodes looked at
  std::map<std::string, bool> inferred;
  for (const std::string &name : foreign.names) {
    const onnx::OpSchema *schema = onnx::OpSchemaRegistry::Schema(name, static_cast<int>(opset), "");
    inferred[name] = schema && !schema->HasFunction() && schema->HasContextDependentFunction();
  }
  int64_t nodes = 0;
  forEachNode(graph.node(), [&](const onnx::NodeProto &node) {
    nodes += foreign.Contains(node.domain(), node.op_type()) && inferred[node.op_type()];
  });
  if (nodes * graph.node_size() <= most)
    return Success{};
  return Error{
      std::to_string(nodes) + " of its " + std::to_string(graph.node_size()) +
      " nodes are compositions of others that are too many to take apart here; export the model with simpler ops"};
}

Status inlineFunctions(onnx::ModelProto &model, int64_t opset) {
  guardShapeInference();
  if (model.functions_size() > 0)
    if (Status local = guarded("cannot inline functions",
                               [&] { onnx::inliner::InlineLocalFunctions(model, /*convert_version=*/true); });
        !local)
      return local;
  // Bodies may hold compositions again. The library infers types before it builds a body, so each round inlines what
  // the graph holds.
  std::set<std::string> before;
  for (ForeignOps foreign(model.graph()); !foreign.names.empty() && foreign.names != before;
       foreign = ForeignOps(model.graph())) {
    before = foreign.names;
    if (Status cheap = checkInferences(model.graph(), foreign, opset); !cheap)
      return cheap;
    addDefaultAttributes(*model.mutable_graph(), foreign, opset);
    auto nodes = model.graph().node();
    // The import says which node is not supported, so a failure here only has to leave the graph whole.
    if (!guarded("", [&] { onnx::inliner::InlineSelectedFunctions(model, foreign, nullptr); })) {
      *model.mutable_graph()->mutable_node() = nodes;
      break;
    }
  }
  return Success{};
}

} // namespace

OnnxFile::OnnxFile(std::unique_ptr<Contents> contents) : contents(std::move(contents)) {}
OnnxFile::OnnxFile(OnnxFile &&) = default;
OnnxFile &OnnxFile::operator=(OnnxFile &&) = default;
OnnxFile::~OnnxFile() = default;

Result<OnnxFile> OnnxFile::read(const std::string &path, const Limits &limits) {
  auto contents = std::make_unique<Contents>(path);
  onnx::ModelProto &model = contents->model;
  auto failed = [&](const Status &status) { return Error{path + ": " + status.error()}; };

  if (Status parsed = parse(path, model); !parsed)
    return failed(parsed);
  if (Status sized = checkFunctions(model, limits); !sized)
    return failed(sized);
  Result<int64_t> opset = defaultOpset(model);
  if (!opset)
    return failed(opset.takeError());
  contents->opset = *opset;
  // Our own look at the data comes before the checker's: it names offsets and lengths.
  if (Status indexed = contents->tensors.addInitializers(model.graph()); !indexed)
    return failed(indexed);
  if (Status valid = check(path, model, *opset); !valid)
    return failed(valid);
  if (Status named = checkNames(model.graph()); !named)
    return failed(named);
  if (Status typed = checkElementTypes(model, *opset); !typed)
    return failed(typed);
  if (Status fits = checkWidened(model, contents->tensors, limits); !fits)
    return failed(fits);
  if (widenFloats(model, contents->tensors)) {
    contents->tensors = TensorIndex(path);
    if (Status indexed = contents->tensors.addInitializers(model.graph()); !indexed)
      return failed(indexed);
  }
  if (Status inlined = inlineFunctions(model, *opset); !inlined)
    return failed(inlined);
  if (Status named = checkText(model.graph()); !named)
    return failed(named);
  if (Status indexed = contents->tensors.addConstants(model.graph()); !indexed)
    return failed(indexed);
  contents->forms = readStoredForms(model, contents->tensors);
  contents->initializers = model.graph().initializer_size();
  return OnnxFile(std::move(contents));
}

Status OnnxFile::addInitializer(const onnx::TensorProto &tensor, const std::string &name) {
  onnx::TensorProto &added = *contents->model.mutable_graph()->add_initializer();
  added = tensor;
  added.set_name(name);
  return contents->tensors.add(name, added);
}

Status OnnxFile::indexConstant(const onnx::NodeProto &node) { return contents->tensors.addConstant(node); }

Status OnnxFile::replaceNodes(google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes) {
  onnx::GraphProto &graph = *contents->model.mutable_graph();
  if (!contents->replaced) { // else they were kept the first time
    contents->nodes.Swap(graph.mutable_node());
    contents->outputs = graph.output();
    contents->replaced = true;
  }
  graph.mutable_node()->Swap(&nodes);
  std::set<std::string> made;
  for (const auto &initializer : graph.initializer())
    made.insert(initializer.name());
  for (const auto &input : graph.input())
    made.insert(input.name());
  for (const auto &node : graph.node())
    made.insert(node.output().begin(), node.output().end());
  auto &outputs = *graph.mutable_output();
  outputs.erase(
      std::remove_if(outputs.begin(), outputs.end(), [&](const auto &output) { return !made.count(output.name()); }),
      outputs.end());
  if (Status named = checkText(graph); !named)
    return named;
  return contents->tensors.addConstants(graph);
}

void OnnxFile::restore() {
  onnx::GraphProto &graph = *contents->model.mutable_graph();
  if (contents->replaced) {
    for (const auto &node : graph.node())
      if (node.op_type() == "Constant" && node.output_size() == 1)
        contents->tensors.forget(node.output(0));
    graph.mutable_node()->Swap(&contents->nodes);
    graph.mutable_output()->Swap(&contents->outputs);
    contents->nodes.Clear();
    contents->replaced = false;
    (void)contents->tensors.addConstants(graph); // which succeeded when the file was read
  }
  for (int i = contents->initializers; i < graph.initializer_size(); ++i)
    contents->tensors.forget(graph.initializer(i).name());
  graph.mutable_initializer()->DeleteSubrange(contents->initializers,
                                              graph.initializer_size() - contents->initializers);
}

const std::string &OnnxFile::path() const { return contents->path; }
const onnx::ModelProto &OnnxFile::model() const { return contents->model; }
int64_t OnnxFile::opset() const { return contents->opset; }
Exporter OnnxFile::exporter() const {
  const std::string &producer = model().producer_name();
  const bool isTensorFlow = producer == "tf2onnx" || producer == "keras2onnx";
  return producer == "pytorch" ? Exporter::PyTorch : isTensorFlow ? Exporter::TensorFlow : Exporter::Other;
}
const std::map<std::string, std::string> &OnnxFile::refused() const { return contents->forms.refused; }
const FileTensor *OnnxFile::tensor(std::string_view name) const { return contents->tensors.find(name); }

} // namespace sluice
