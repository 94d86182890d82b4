// SPDX-License-Identifier: Apache-2.0
// What the parts of the emitter share: the programs, a C++ name for everything in them, and how a tensor is written in
// a call.
#pragma once

#include "codegen/EmitFused.h"
#include "codegen/EmitProgram.h"
#include "codegen/Text.h"
#include "ir/Buckets.h"
#include "ir/LossyPlan.h"
#include "ir/RuntimeTypes.h"
#include "ir/Sched.h"
#include "ir/Train.h"

#include <map>
#include <string>
#include <vector>

namespace sluice::codegen {

/// A call of the emitted file: of a kernel object, `Conv conv1{"/conv1/Conv", ...};`, or of a function of the runtime.
struct KernelCallText {
  std::string object, declaration;   ///< empty for a function
  std::string method;                ///< or function
  std::vector<std::string> operands; ///< after the stream
  bool scratch = false;              ///< the object's workspace is checked against the slot
};

/// An activation that stays between its forward and its backward readers, and could be packed.
struct KeptBuffer {
  sched::BufferOp buffer;
  sluice::Comparison compared;
};

/// The programs of a bucket of shapes, or of a turn.
struct BucketPrograms {
  train::Bucket bucket;
  std::string name;                        ///< its own; empty where there is only one
  std::string ending;                      ///< of the names of its functions and tables: "_128"; likewise
  mutable sched::ProgramOp step, evaluate; ///< the latter null where there is none
  int64_t decodes = -1; ///< of the decode step, whose program is `evaluate`, without a step: the output that it leaves
};

/// Everything that the emitted file names, gathered before its first line is printed. Refers to the module, which must
/// not change while it lives.
class Document {
public:
  /// `module` is planned and placed. Keeps references to it and the options.
  Document(mlir::ModuleOp module, const EmitOptions &options, Names names);

  // Handles of ops: MLIR's accessors are not const.
  mutable mlir::ModuleOp module;
  mutable sched::ProgramOp step, evaluate; ///< of the largest bucket, or the last turn
  train::PlanAttr plan;                    ///< of that step
  std::vector<BucketPrograms> buckets;     ///< from the smallest to the largest, or turns in their order
  std::optional<BucketPrograms> decode;    ///< none where there is no decode step
  /// All of them, those of the largest bucket first.
  llvm::SmallVector<sched::ProgramOp> programs() const;
  const EmitOptions &options;
  Names names;
  FusedTable fused;

  /// Name of the constant that declares the buffer, and the type it is declared with.
  const std::string &nameOf(mlir::Value buffer) const { return tensorNames.at(keyOf(buffer)); }
  mlir::RankedTensorType typeOf(mlir::Value buffer) const;
  /// The buffer as a tensor of `type`, or its piece from byte `first` on, in an expression inside a function of the
  /// step.
  std::string use(mlir::Value buffer, mlir::RankedTensorType type, std::optional<int64_t> first = {}) const;
  /// The same in a constant expression: the first of an input's two slots.
  std::string constant(mlir::Value buffer, mlir::RankedTensorType type, std::optional<int64_t> first = {}) const;
  const std::string &eventOf(mlir::Value event) const { return eventNames.at(event.getAsOpaquePointer()); }
  /// Of a run, in order; names are handed out once.
  const std::vector<KernelCallText> &callsOf(sched::RunOp run) const { return kernels.at(run.getOperation()); }
  /// Copies of the next batch, which the runtime does while a step runs, and the waits and records that go with them.
  bool isIssuedByReader(mlir::Operation *op) const { return skipped.count(op) != 0; }
  /// True for the buffer whose declaration stands for all that are the same bytes.
  bool isDeclaredBy(sched::BufferOp buffer) const {
    return keyOf(buffer.getBuffer()) == buffer.getBuffer().getAsOpaquePointer();
  }
  /// The buffer of a variable, null when no program touches it.
  mlir::Value variableBuffer(llvm::StringRef symbol) const;
  /// Variables that a program touches, in order: the table of the emitted program.
  llvm::SmallVector<train::VariableOp> variables;
  /// The number in that table.
  int variableNumber(llvm::StringRef symbol) const { return numbers.at(symbol); }
  /// Constant of a result (see sched.buffer), empty when there is none.
  std::string resultName(int64_t index) const;
  /// Constant of what an evaluation keeps under this number, empty when there is nothing.
  std::string keptName(sched::ProgramOp evaluation, int64_t number) const;
  /// Number of the input of this name, as inputs() has them; -1 when there is none.
  int64_t inputNumber(llvm::StringRef name) const;
  struct InputNames {
    std::string name, slots, staging;
  };
  /// Model inputs in order, then the target, as constants of the largest bucket.
  std::vector<InputNames> inputs() const;
  /// The type of an input in a program; null where that does not read it.
  mlir::RankedTensorType inputType(sched::ProgramOp program, llvm::StringRef name) const;
  /// Their declarations.
  std::string inputDeclarations() const;
  /// Activations of the step that its plan keeps and that could be packed, in the order of their buffers.
  std::vector<KeptBuffer> keptActivations() const;
  /// Extent of the first input's first dimension.
  int64_t batch() const;
  /// Events in the order of their ids.
  std::vector<std::string> events;

private:
  const void *keyOf(mlir::Value buffer) const;
  void nameBuffers(sched::ProgramOp program);
  void noteTypes(sched::ProgramOp program);
  void skipNextBatch(sched::ProgramOp program);
  void nameEvents(sched::ProgramOp program);
  void makeKernelCalls(sched::ProgramOp program);
  std::string fitted(const std::string &name, mlir::Value buffer, mlir::RankedTensorType type,
                     std::optional<int64_t> first) const;

  std::map<sched::Persistent, mlir::Value> persistent; ///< the first buffer that stands for those bytes
  llvm::StringMap<int> numbers;                        ///< of variables, by symbol
  std::map<const void *, std::string> tensorNames;
  std::map<const void *, mlir::RankedTensorType> tensorTypes;
  std::map<const void *, std::string> eventNames;
  std::map<mlir::Operation *, std::vector<KernelCallText>> kernels;
  std::set<mlir::Operation *> skipped;
};

/// Codec{Codec::Zfp, 8}
std::string codecText(Codec codec);
std::string dataTypeText(DataType type);

/// `, Layout::NHWC, DataType::U8` as far as they differ from row-major F32.
std::string typeArguments(mlir::RankedTensorType type);

// The parts of the file, in order.
std::string emitPreface(const Document &document);
std::string emitSlots(const Document &document);
std::string emitKernels(const Document &document);
std::string emitFunctions(const Document &document);
std::string emitTables(const Document &document);

// Tables among them, each with its number of rows: what is in memory in which steps, for --plan; the plan's decisions,
// added up by action and codec; what the step's ops do, for --roofline; what --profile-errors can measure, left out
// where that is nothing.
int printPlan(const Document &document, llvm::raw_ostream &out);
int printActions(const Document &document, llvm::raw_ostream &out);
int printWork(const Document &document, llvm::raw_ostream &out);
/// Fields of the program by `line`: what its updates have room for, and how several ranks sum.
void printUpdates(const Document &document, llvm::function_ref<void(const llvm::Twine &, const llvm::Twine &)> line);
int printKept(const Document &document, llvm::raw_ostream &out);
// Of each bucket, in the order of the program's inputs and outputs; after these what classes weigh, and the buckets
// or turns where there are several. Outputs are counted of the last one.
int printInputs(const Document &document, llvm::raw_ostream &out);
int printOutputs(const Document &document, llvm::raw_ostream &out);

/// Digits that read back as the same number.
std::string shortest(double number);

} // namespace sluice::codegen
