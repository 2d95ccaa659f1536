// SPDX-License-Identifier: Apache-2.0
// Blocks of a data set in its own order, for who looks at some of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reader/reader.h"

namespace recmill::reader {

/// [blocks + 1]: where blocks of `rows` rows begin, and `rows`. Each but the last has `least` rows
/// at least, and no more than it takes to begin at one of `starts` (Reader::starts()).
std::vector<int64_t> block_bounds(int64_t rows, std::span<const int64_t> starts, int64_t least);

/// A reader of `ranges` of `reader`'s rows alone, one after another: ascending, apart, and made of
/// blocks. `reader` is not shuffled, and nothing was read of it. Where reading has to begin at some
/// places, nothing outside of the ranges is decoded.
Result<std::unique_ptr<Reader>> only_rows(std::unique_ptr<Reader> reader,
                                          std::vector<RowRange> ranges);

}  // namespace recmill::reader
