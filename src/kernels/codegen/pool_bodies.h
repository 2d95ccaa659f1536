// SPDX-License-Identifier: Apache-2.0
// The generated forms of embedding_pool's templates.
#pragma once

#include <string>

#include "kernels/codegen/pool_source.h"
#include "kernels/codegen/source_writer.h"

namespace recmill::kernels::codegen {

/// Writes the statements of one function's body: pools samples [first, last) of `feature`. Null:
/// the template has no generated form.
using WriteBody = void (*)(SourceWriter& write, const PoolFunction& of, int64_t lanes);
WriteBody body_writer(const std::string& template_name);

}  // namespace recmill::kernels::codegen
