// SPDX-License-Identifier: Apache-2.0
// What analyses ask of an op: its gradient, its cost, its bytes, the layout that it wants, whether it can run again or be inverted,
// and, for elementwise ops, its scalar rule.
#ifndef SLUICE_IR_TRAIN_INTERFACES
#define SLUICE_IR_TRAIN_INTERFACES

include "mlir/IR/OpBase.td"

def Train_Differentiable : OpInterface<"Differentiable"> {
  let cppNamespace = "::sluice::train";
  let description = [{
    An op that builds its own gradient ops. `buildGradients` is called with the insertion point in the backward part, once all uses of
    the op's results have contributed; it reads gradients.of(result) and calls gradients.add(operand, gradient) for every operand that
    gradients.wanted(operand). It builds nothing for operands that are not wanted.
  }];
  let methods = [
    InterfaceMethod<"builds the gradient ops of this op", "::mlir::LogicalResult", "buildGradients",
      (ins "::mlir::OpBuilder &":$builder, "::sluice::train::Gradients &":$gradients)>,
    InterfaceMethod<"true for operands that carry a trained tensor when an initializer is connected to them (weights, scales, biases)",
      "bool", "isWeightOperand", (ins "unsigned":$index), "", "return false;">,
  ];
}

def Train_HasKernel : OpInterface<"HasKernel"> {
  let cppNamespace = "::sluice::train";
  let description = [{
    The runtime calls that compute an op, on either target. The compiler asks the kernels for their workspaces by it, schedule-streams puts it
    into the program, and codegen prints it. All that plans, reports and names ask of an op because of its kernel is here too.

    Slots of calls count the operands that are present, so that an absent optional one shifts those after it, and the results (ir/KernelTable.h); what a kernel
    accumulates into is one more `in`, after the operands.
  }];
  let methods = [
    InterfaceMethod<"calls of the runtime, in order; none where the op's region is the kernel", "::llvm::SmallVector<::sluice::sched::CallAttr>", "kernelCalls">,
    InterfaceMethod<"the op's category, as strategies ask for it", "::sluice::OpKind", "opKind", (ins), "", "return ::sluice::OpKind::Other;">,
    InterfaceMethod<"the name of the kernel object after the node's; empty: `_grad` in the backward half, else nothing", "::llvm::StringRef", "objectSuffix",
      (ins), "", "return {};">,
    InterfaceMethod<"the same suffix for the buffer of result `result`; empty: `_y` in the forward half, `_grad` in the backward one, or one for what the op is cloned for",
      "::llvm::StringRef", "resultSuffix", (ins "unsigned":$result, "bool":$backward), "", "return {};">,
    InterfaceMethod<"the name under which programs record the time of the first call", "::std::string", "launchName", (ins), "", [{
      return $_op->getName().stripDialect().str();
    }]>,
    InterfaceMethod<"the op's role in a step, unless a plan runs it for something else", "::sluice::sched::Role", "role", (ins), "", "return ::sluice::train::roleOf($_op.opKind());">,
    InterfaceMethod<"which operand's integers name rows, elements or classes, and of how many; null: none does, or the forward op of the same node reports it",
      "::sluice::sched::IdsAttr", "ids", (ins), "", "return {};">,
    InterfaceMethod<"whether the cuda runtime gathers several such calls into one launch (runtime/Gather.h)", "bool", "gathers", (ins), "",
      "return false;">,
    InterfaceMethod<"the kernel adds to what its result holds", "bool", "accumulates", (ins), "", "return false;">,
  ];
}
def Train_OwnKernel : DeclareOpInterfaceMethods<Train_HasKernel>;
/// For attention and its gradient, whose `masks` are two at most.
def Train_AttentionMasks {
  string decl = [{
    /// What is added to scores; null for none.
    mlir::Value getMask() { return getMasks().empty() ? mlir::Value() : getMasks()[0]; }
    /// Where it is not above 0 a score is the mask's number alone; null where all scores are kept.
    mlir::Value getKept() { return getMasks().size() < 2 ? mlir::Value() : getMasks()[1]; }
  }];
}

/// For ops whose kind, and whose names if they have any, are fixed.
class Train_KernelFacts<string kind, string object = "", list<string> results = [], string launch = ""> {
  string decl = "::sluice::OpKind opKind() { return ::sluice::OpKind::" # kind # "; }\n"
    # !if(!empty(object), "", "::llvm::StringRef objectSuffix() { return \"" # object # "\"; }\n")
    # !if(!empty(results), "", "::llvm::StringRef resultSuffix(unsigned result, bool) {\n"
        # "  const char *const suffixes[] = {\"" # !interleave(results, "\", \"") # "\"};\n  return suffixes[result];\n}\n")
    # !if(!empty(launch), "", "::std::string launchName() { return \"" # launch # "\"; }\n");
}

/// For ops that wait for memory, but not as elementwise ones do.
class Train_MemoryWork<string kind> {
  string decl = "::sluice::OpWork work() { return ::sluice::MemoryWork{::sluice::MemoryWork::" # kind # "}; }\n";
}

/// For ops whose role is fixed.
class Train_RoleIs<string role> {
  string decl = "::sluice::sched::Role role() { return ::sluice::sched::Role::" # role # "; }\n";
}

def Train_View : OpInterface<"View"> {
  let cppNamespace = "::sluice::train";
  let description = [{ An op of one operand and one result whose result may be the operand's bytes, or a piece of them. }];
  let methods = [
    InterfaceMethod<"whether the result is the operand's bytes, or a piece of them, given both layouts; if not, a kernel copies", "bool", "sharesBytes", (ins), "", "return true;">,
    InterfaceMethod<"where the piece begins, in bytes from the operand's first; none: the result is all of them", "std::optional<int64_t>", "firstByte", (ins), "",
      "return std::nullopt;">,
  ];
}

def Train_ChangesVariables : OpInterface<"ChangesVariables"> {
  let cppNamespace = "::sluice::train";
  let description = [{
    An op whose results are the new values of variables. Each result overwrites the bytes of the operand that held the old value; that operand is a
    train.read or the result of another such op. In most of these ops they are the last operands, in the order of the results.

    - V1: each of them is the value of a variable, and of the result's type.
  }];
  let verify = "return ::sluice::train::verifyChanges($_op);";
  let methods = [
    InterfaceMethod<"the operand whose bytes the result takes", "unsigned", "changedOperand", (ins "unsigned":$result), "",
      "return $_op->getNumOperands() - $_op->getNumResults() + result;">,
    InterfaceMethod<"the piece of its variable that the result changes, and that is read of the old value; none: all of it",
      "std::optional<::sluice::train::VariablePiece>", "changedPiece", (ins "unsigned":$result), "", "return std::nullopt;">,
  ];
}

def Train_NeedsRoom : OpInterface<"NeedsRoom"> {
  let cppNamespace = "::sluice::train";
  let description = [{
    An op that meets other ranks and needs a place for what these send. linearize gives it one, which is its last operand then, and leaves as its last result
    in the same bytes: a variable of a megabyte or two at most, whatever the number of ranks, which all of these ops have in common, one after the other.
  }];
  let methods = [
    InterfaceMethod<"the place, null before linearize", "::mlir::Value", "getRoom">,
    InterfaceMethod<"how many elements it has at least; 0: the op needs none", "int64_t", "roomElements">,
  ];
}

def Train_MovesContent : OpInterface<"MovesContent"> {
  let cppNamespace = "::sluice::train";
  let description = [{ A memory op: its result has new bytes for the content of a value, which may have left and come back since. }];
  let methods = [
    InterfaceMethod<"the value that first held the content", "::mlir::Value", "original">,
    InterfaceMethod<"what the new bytes are called after the original's", "::std::string", "storageSuffix">,
    InterfaceMethod<"how many they are", "int64_t", "storageBytes", (ins), "", "return ::sluice::train::bytes($_op->getResult(0).getType());">,
  ];
}

def Train_Costed : OpInterface<"Costed"> {
  let cppNamespace = "::sluice::train";
  let description = [{ Arithmetic and memory traffic of one execution, and which measured kernels it resembles, for estimates of its time.
    Workspace belongs to a target's kernels and is asked from the runtime by estimate-cost. }];
  let methods = [
    InterfaceMethod<"floating-point operations", "int64_t", "flops", (ins), "", [{
      int64_t n = 0;
      for (::mlir::Value v : $_op->getResults()) n += ::sluice::train::elements(v.getType());
      return n;
    }]>,
    InterfaceMethod<"bytes read and written once each", "int64_t", "bytesMoved", (ins), "", [{
      int64_t n = 0;
      for (::mlir::Value v : ::llvm::SmallSetVector<::mlir::Value, 8>($_op->operand_begin(), $_op->operand_end()))
        n += ::sluice::train::bytes(v.getType());
      for (::mlir::Value v : $_op->getResults()) n += ::sluice::train::bytes(v.getType());
      return n;
    }]>,
    InterfaceMethod<"the kind of kernel that runs it, and its size in that kernel's terms", "::sluice::OpWork", "work", (ins), "", "return {};">,
  ];
}

def Train_Recomputable : OpInterface<"Recomputable"> {
  let cppNamespace = "::sluice::train";
  let description = [{ A forward op that may be cloned before a backward user: it changes no state, and a second run gives the same
    bits (dropout draws from a counter). }];
}

def Train_Invertible : OpInterface<"Invertible"> {
  let cppNamespace = "::sluice::train";
  let description = [{
    A forward op an operand of which can be rebuilt from its first result and its other operands, up to rounding, so that the operand need
    not be kept for the backward half. Where some channels would lose too many digits, the op saves those when it runs first.
  }];
  let methods = [
    InterfaceMethod<"whether this operand can be rebuilt", "bool", "isInvertible", (ins "unsigned":$operand)>,
    InterfaceMethod<"type of what is saved; null: nothing is, and then the first result may not come back from half precision", "::mlir::RankedTensorType", "savedType", (ins "unsigned":$operand)>,
    InterfaceMethod<"builds the op that saves it; half: the first result comes back from half precision", "::mlir::Value", "buildSaved",
      (ins "::mlir::OpBuilder &":$builder, "unsigned":$operand, "bool":$half)>,
    InterfaceMethod<"builds the ops that rebuild the operand; `operands` and `result` are the newest versions of this op's own, `operands[operand]` is null",
      "::mlir::Value", "buildInverse", (ins "::mlir::OpBuilder &":$builder, "unsigned":$operand, "::mlir::ValueRange":$operands,
        "::mlir::Value":$result, "::mlir::Value":$saved, "bool":$half)>,
  ];
}

def Train_PrecisionAware : OpInterface<"PrecisionAware"> {
  let cppNamespace = "::sluice::train";
  let description = [{
    Which element types an op's floats may have when a step computes in mixed precision. Ops without the interface take and give f32, and
    so do all where no pass says otherwise. Kernels compute in f32 whatever they load and store.

    - P1: the factors of a Product have one type, its result has it too or, where it may be stored wide, f32.
    - P2: all floats of an op that wishes Same have one type.
    - P3: operands and results that stay wide are f32.
  }];
  let verify = "return ::sluice::train::verifyPrecision($_op);";
  let methods = [
    InterfaceMethod<"Product: operands 0 and 1 are what tensor cores multiply; Same: one type for all; Mixed: every operand its own", "::sluice::train::PrecisionPreference",
      "precisionPreference", (ins), "", "return ::sluice::train::PrecisionPreference::Same;">,
    InterfaceMethod<"operands that stay f32 whatever the wish (biases, statistics), with the results as they are", "bool", "isOperandWide", (ins "unsigned":$operand), "",
      "return false;">,
    InterfaceMethod<"the same for results (weight gradients, sums)", "bool", "isResultWide", (ins "unsigned":$result), "", "return false;">,
    InterfaceMethod<"a product whose result may be f32 although its factors are not", "bool", "mayStoreWide", (ins), "", "return false;">,
  ];
}

def Train_LayoutAware : OpInterface<"LayoutAware"> {
  let cppNamespace = "::sluice::train";
  let description = [{ Which physical order an op's operands and results of rank 3 to 5 have. Ops without the interface are row-major. }];
  let methods = [
    InterfaceMethod<"ChannelsLast: NHWC; Follow: that of the operands; all full-shape ones agree", "::sluice::train::LayoutPreference", "layoutPreference", (ins), "",
      "return ::sluice::train::LayoutPreference::ChannelsLast;">,
    InterfaceMethod<"operands that stay row-major whatever the wish (convolution weights)", "bool", "isLayoutFixed",
      (ins "unsigned":$operand), "", "return false;">,
    InterfaceMethod<"the same for results (weight gradients)", "bool", "isResultLayoutFixed", (ins "unsigned":$result), "", "return false;">,
  ];
}

// For the ops that take any layout, as long as all full-shape operands and results have the same.
class Train_FollowDeclaration { string decl = "::sluice::train::LayoutPreference layoutPreference() { return ::sluice::train::LayoutPreference::Follow; }\n"; }
def Train_Follow : Train_FollowDeclaration;

def Train_Elementwise : OpInterface<"Elementwise"> {
  let cppNamespace = "::sluice::train";
  let description = [{
    An op defined by a scalar rule. The fuse pass puts the rule into the region of a train.fused, and codegen prints it for either
    target. Operands broadcast by numpy's rules, those of isChannelOperand by the channel dimension 1. Results that are sums are [C].

    - C1: results have one shape, that of operand 0 where all of them are sums; other operands broadcast to it; channel operands and sums
      are [C].
  }];
  let verify = "return ::sluice::train::verifyElementwise($_op);";
  let methods = [
    InterfaceMethod<"scalar results of the rule applied to one element of each operand", "::llvm::SmallVector<::mlir::Value>", "buildScalar",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$scalars)>,
    InterfaceMethod<"what generated kernels call the operands' elements", "::llvm::ArrayRef<::llvm::StringLiteral>", "operandNames", (ins), "",
      "return {};">,
    InterfaceMethod<"what they call the rule's values", "::llvm::ArrayRef<::llvm::StringLiteral>", "resultNames", (ins), "", "return {};">,
    InterfaceMethod<"a [C] operand indexed by dimension 1", "bool", "isChannelOperand", (ins "unsigned":$index), "", "return false;">,
    InterfaceMethod<"a [C] result: the rule's value summed over all dimensions but 1", "bool", "isSumResult", (ins "unsigned":$index), "",
      "return false;">,
  ];
}

#endif
