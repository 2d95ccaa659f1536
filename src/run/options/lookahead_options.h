// SPDX-License-Identifier: Apache-2.0
// The section [lookahead].
#pragma once

#include <cstdint>
#include <optional>

#include "lookahead/oracle.h"
#include "schema/options.h"
#include "schema/size_range.h"

namespace recmill::train {

/// Of embedding.store = "cached".
struct LookaheadOptions {
  std::optional<int64_t> batches;
  int64_t prefetch = 4;
  std::optional<int64_t> cache;
};
template <typename Visitor>
void describe(Visitor& v, LookaheadOptions& o) {
  v("batches", o.batches,
    "batches after each one whose rows are known before it is trained: a row that they use "
    "stays in the cache; by default the largest number up to 200 whose batches and rows fit in "
    "memory",
    between(0, static_cast<double>(lookahead::kMostLookahead)));
  v("prefetch", o.prefetch,
    "batches whose rows are fetched ahead of training, at most lookahead.batches", at_least(0));
  v("cache", o.cache,
    "bytes of the cache's rows with their state; by default as many as all rows take, or what the "
    "rest of the run leaves free",
    size_range());
}

}  // namespace recmill::train
