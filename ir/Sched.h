// SPDX-License-Identifier: Apache-2.0
// The one header of the sched dialect.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"

#include "runtime/OpRoleTable.h"
#include "runtime/StreamTable.h"

#include <tuple>

#include "ir/SchedEnums.h.inc"

#include "ir/SchedDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/SchedAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/SchedTypes.h.inc"

namespace sluice::sched {

/// What a buffer that outlives a step is: two buffers of any programs have the same bytes exactly if these are equal.
struct Persistent {
  enum class Kind { Transient, Variable, Result, Batch, Staging };
  Kind kind = Kind::Transient;
  llvm::StringRef name; ///< of the variable or the input; valid while the op is
  int64_t number = 0;   ///< of the result, or which of the two batches

  bool operator<(const Persistent &other) const {
    return std::tie(kind, name, number) < std::tie(other.kind, other.name, other.number);
  }
};

/// Stands for "not a piece" where sched.run lists in which byte of its buffer each piece begins.
constexpr int64_t wholeBuffer = -1;
/// Null where none is a piece.
mlir::DenseI64ArrayAttr firstsOf(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> firsts);
/// Of the i-th buffer; none: it is no piece.
std::optional<int64_t> firstOf(mlir::DenseI64ArrayAttr firsts, size_t i);

} // namespace sluice::sched

#define GET_OP_CLASSES
#include "ir/SchedOps.h.inc"

namespace sluice::sched {

/// The row of the stream in the runtime's table, whose index is the enumerator's value.
constexpr StreamId idOf(Stream stream) { return static_cast<StreamId>(stream); }
constexpr const StreamFacts &factsOf(Stream stream) { return sluice::factsOf(idOf(stream)); }
static_assert(getMaxEnumValForStream() + 1 == streamCount,
              "the enumerators of SchedDialect.td are those of runtime/StreamTable.h, by the same names");

/// The row of the arena in the runtime's table, whose index is the enumerator's value.
constexpr sluice::Space idOf(Space space) { return static_cast<sluice::Space>(space); }
constexpr Space spaceOf(sluice::Space space) { return static_cast<Space>(space); }
constexpr const ArenaFacts &factsOf(Space space) { return sluice::factsOf(idOf(space)); }
static_assert(getMaxEnumValForSpace() + 1 == arenaCount,
              "the enumerators of SchedDialect.td are those of runtime/StreamTable.h, by the same names");
/// The stream of copies from the device to the arena, or back.
constexpr Stream streamTo(Space space) { return static_cast<Stream>(factsOf(space).out); }
constexpr Stream streamFrom(Space space) { return static_cast<Stream>(factsOf(space).in); }

/// The row of the role in the runtime's table, whose index is the enumerator's value.
constexpr OpRole idOf(Role role) { return static_cast<OpRole>(role); }
constexpr const OpRoleFacts &factsOf(Role role) { return sluice::factsOf(idOf(role)); }
static_assert(getMaxEnumValForRole() + 1 == static_cast<int>(firstOfCopies),
              "the enumerators of SchedDialect.td are those of runtime/OpRoleTable.h, by the same names");

/// Kernels and copies in issue order; step k is element k - 1.
llvm::SmallVector<mlir::Operation *> steps(ProgramOp program);

/// The copies of the next batch, and the records and waits that order nothing else. The program states them, so that
/// they are placed and verified with the rest; the runtime's data reader issues them, so codegen leaves them out.
llvm::DenseSet<mlir::Operation *> issuedByReader(ProgramOp program);

/// Bytes of host memory that all copies with this codec share, 0 where each tensor has its own.
int64_t poolBytes(std::optional<llvm::StringRef> codec);

} // namespace sluice::sched
