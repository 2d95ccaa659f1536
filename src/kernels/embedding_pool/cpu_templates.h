// SPDX-License-Identifier: Apache-2.0
// Bodies of the templates for the CPU device (templates.cc says what each is), for every dimension,
// precision and instruction set.
#pragma once

#include "kernels/embedding_pool/pool_template.h"

namespace recmill::kernels {

void pool_bags(const PoolPiece& piece, ParameterValues values, std::byte* scratch);
void pool_one_each(const PoolPiece& piece, ParameterValues values, std::byte* scratch);
void copy_rows(const PoolPiece& piece, ParameterValues values, std::byte* scratch);
void pool_bags_interleaved(const PoolPiece& piece, ParameterValues values, std::byte* scratch);
void pool_runs_interleaved(const PoolPiece& piece, ParameterValues values, std::byte* scratch);
void pool_grouped_ids(const PoolPiece& piece, ParameterValues values, std::byte* scratch);

}  // namespace recmill::kernels
