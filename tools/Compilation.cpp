// SPDX-License-Identifier: Apache-2.0
// Context, import and pipeline, see Compilation.h.
#include "tools/Compilation.h"

#include "frontend/OnnxImport.h"
#include "frontend/Refusals.h"
#include "ir/Sched.h"
#include "ir/TensorName.h"
#include "passes/Passes.h"
#include "runtime/Printable.h"

using namespace mlir;

namespace sluice {

/// The first error is kept with its notes, what follows it is mostly its consequence. Remarks are kept in order: passes
/// say by them what they decided.
Compilation::Compilation()
    : context(MLIRContext::Threading::DISABLED), // threads would crash where nothing catches it, and save nothing: two
                                                 // functions
      handler(&context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
          decided.push_back(describe(diagnostic));
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error || !text.empty())
          return success();
        text = describe(diagnostic);
        for (const Diagnostic &note : diagnostic.getNotes())
          attached.push_back(describe(note));
        return success();
      }) {
  context.loadDialect<train::TrainDialect, sched::SchedDialect, func::FuncDialect, arith::ArithDialect,
                      math::MathDialect>();
  context.printOpOnDiagnostic(false); // nodes are what users know
}

std::string Compilation::describe(const Diagnostic &diagnostic) const {
  const std::string text = diagnostic.str(), node = train::nodeName(diagnostic.getLocation());
  const bool named = text.find("'" + node + "'") != std::string::npos,
             wholeModel = !owner || diagnostic.getLocation() == owner.get()->getLoc();
  return node.empty() || named || wholeModel ? text : "node '" + node + "': " + text;
}

Status Compilation::import(OnnxFile &file, const TrainingSpec &spec, const DimBuckets &buckets) {
  ImportReport report;
  auto module = importBuckets(context, file, spec, buckets, report);
  attached = std::move(report.notes);
  decided = std::move(report.remarks);
  if (!module)
    return module.takeError();
  owner = std::move(*module);
  return Success{};
}

bool Compilation::run(Level until, const PipelineOptions &options) {
  if (succeeded(runPipeline(*owner, reached, until, options, cause))) {
    if (reached == Level::Forward && until != Level::Forward)
      remarkOnUnreached();
    reached = until;
    return true;
  }
  if (text.empty())
    text = "compilation failed";
  return false;
}

void Compilation::remarkOnUnreached() {
  std::vector<std::string> names;
  for (auto variable : owner->getOps<train::VariableOp>())
    if (train::attr::has<train::attr::Unreached>(variable))
      names.push_back(train::tensorName(variable).str());
  const bool isOne = names.size() == 1;
  if (!names.empty())
    decided.push_back("no gradient of the loss reaches " + counted(names.size(), "parameter") + ", which stay" +
                      (isOne ? "s" : "") + " as " + (isOne ? "it is" : "they are") + ": " + someOf(names));
}

} // namespace sluice
