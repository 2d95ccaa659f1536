// SPDX-License-Identifier: Apache-2.0
// An op as kernels are given it. Read by the compilers of kernels too.
#pragma once

#include "device/kernel_types.h"
#include "preprocess/ops/formulas.h"

namespace recmill::preprocess {

enum class GpuOpKind : i32 {
  clamp,
  fill_null,
  log,
  standardize,
  bucketize,
  direct,
  modulo,
  sigrid_hash,
  fill_missing_id,
  first_x,
};

struct GpuOp {
  GpuOpKind kind;
  union {  // that of its kind
    formulas::Clamp clamp;
    formulas::FillNull fill_null;
    formulas::Log log;
    formulas::Standardize standardize;
    formulas::Bucketize bucketize;
    formulas::Direct direct;
    formulas::Modulo modulo;
    formulas::SigridHash sigrid_hash;
    formulas::FillMissingId fill_missing_id;
    formulas::FirstX first_x;
  };
};

}  // namespace recmill::preprocess
