// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "kernels/codegen/library_cache.h"
#include "pool_op/pool_op_source.h"

namespace recmill::kernels::codegen {

/// Runs the operator of a loaded library on the CPU, on small tables and all kinds of bags. Fails,
/// naming library and feature, where it answers otherwise than the reference, or is no operator.
Status check_pool_op(const PoolOp& op, const Library& library);

}  // namespace recmill::kernels::codegen
