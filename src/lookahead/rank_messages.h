// SPDX-License-Identifier: Apache-2.0
// What ranks of a cache tell each other, in few bytes: rows ascend, and most numbers are small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "lookahead_plan/rank_step.h"

namespace recmill::lookahead {

/// Ascending rows, about two bytes each, behind what `message` has.
void append_rows(std::span<const int64_t> rows, std::vector<std::byte>& message);
/// Fails on bytes that append_rows() did not make.
Result<std::vector<int64_t>> read_rows(std::span<const std::byte> message);

/// The part of a decider for `rank`, whose lists ascend, without what follows from the rest of it.
void append_part(const RankStep& part, int32_t rank, std::vector<std::byte>& message);
/// Fails on bytes that append_part() did not make.
Result<RankStep> read_part(std::span<const std::byte> message, int32_t rank);

}  // namespace recmill::lookahead
