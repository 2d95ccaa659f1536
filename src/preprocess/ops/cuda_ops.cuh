// SPDX-License-Identifier: Apache-2.0
// Ops on a GPU: of one value, of one id, and of one id of a bag, each bitwise the op's plain().
#pragma once

#include "device/kernel.cuh"
#include "preprocess/ops/gpu_op.h"

namespace recmill::preprocess {

RECMILL_DEVICE float run_dense_op(const GpuOp& op, float x) {
  switch (op.kind) {
    case GpuOpKind::clamp:
      return op.clamp(x);
    case GpuOpKind::fill_null:
      return op.fill_null(x);
    case GpuOpKind::log:
      return op.log(x);
    case GpuOpKind::standardize:
      return op.standardize(x);
    default:
      __trap();
      return x;
  }
}

RECMILL_DEVICE KeptRange kept_range(const GpuOp& op) {
  return op.kind == GpuOpKind::clamp ? op.clamp.kept()
         : op.kind == GpuOpKind::log ? op.log.kept()
                                     : KeptRange();
}

RECMILL_DEVICE u64 run_bucket_op(const GpuOp& op, float x) {
  if (op.kind != GpuOpKind::bucketize) __trap();
  return op.bucketize(x);
}

RECMILL_DEVICE u64 run_id_op(const GpuOp& op, u64 id, IdCounts& counts) {
  switch (op.kind) {
    case GpuOpKind::direct:
      return op.direct(id, counts);
    case GpuOpKind::modulo:
      return op.modulo(id);
    case GpuOpKind::sigrid_hash:
      return op.sigrid_hash(id);
    default:
      __trap();
      return id;
  }
}

/// Id i of a bag, on its way through ops on bags that leave it i + 1 ids at least. Those of an
/// empty bag are any, until an op fills it.
struct BagId {
  u64 id;
  float weight;
  i64 length;  // of the bag
};

RECMILL_DEVICE BagId run_bag_op(const GpuOp& op, const BagId& of) {
  switch (op.kind) {
    case GpuOpKind::fill_missing_id: {
      const i64 length = op.fill_missing_id.length(of.length);
      return of.length == 0 ? BagId{op.fill_missing_id.id, 1.0f, length}
                            : BagId{of.id, of.weight, length};
    }
    case GpuOpKind::first_x:
      return {of.id, of.weight, op.first_x.length(of.length)};
    default:
      __trap();
      return of;
  }
}

}  // namespace recmill::preprocess
