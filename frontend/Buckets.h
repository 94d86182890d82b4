// SPDX-License-Identifier: Apache-2.0
// --dim with several extents: a step for each of several shapes, in one module.
#pragma once

#include "frontend/OnnxImport.h"

namespace sluice {

/// --dim NAME=N0,N1,... or --dim A,B=N0xM0,N1xM1,...: several extents of open dimensions, which vary together.
struct DimBuckets {
  static constexpr size_t most = 64;

  std::vector<std::string> names;            ///< none: all dimensions have one extent
  std::vector<std::vector<int64_t>> extents; ///< of each bucket, one for each name; no two are the same

  /// "128" or "32x48".
  std::string extentsOf(size_t bucket) const;
  /// "tokens=128" or "height,width=32x48".
  std::string nameOf(size_t bucket) const;
};

/// Adds `NAME=N`, or `A,B=NxM`, to the spec; several extents to the buckets, of which there is one list.
Status parseDims(const std::string &argument, TrainingSpec &spec, DimBuckets &buckets);

/// Imports the file once for each bucket and merges the modules: the variables are the same, constants that follow from
/// the shapes each bucket's own. The module lists them, see ir/Buckets.h. Without buckets it is importOnnx(). Errors
/// name the bucket.
Result<mlir::OwningOpRef<mlir::ModuleOp>> importBuckets(mlir::MLIRContext &context, OnnxFile &file,
                                                        const TrainingSpec &spec, const DimBuckets &buckets,
                                                        ImportReport &report);

} // namespace sluice
