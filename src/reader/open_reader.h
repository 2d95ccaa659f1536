// SPDX-License-Identifier: Apache-2.0
// From the options of a data set to a reader of it.
#pragma once

#include <cstdint>
#include <memory>

#include "base/files.h"
#include "device/thread_pool.h"
#include "reader/data_options.h"
#include "reader/reader.h"
#include "reader/text/text_parser.h"

namespace recmill::reader {

/// Opens `subset` of the data set. `seed` is that of the shuffle (training rows only) and of random
/// negatives. Errors name the option or the file. Parsing runs on `pool`, which must outlive the
/// reader, as `files` must. Nothing is counted or indexed before the first rows() or read().
/// `parser` is for text; both kinds give the same bits.
Result<std::unique_ptr<Reader>> open_reader(const DataOptions& options, Subset subset,
                                            uint64_t seed, ThreadPool& pool, Files& files,
                                            ParserKind parser = ParserKind::fast);

/// Whether there is an evaluation subset, which may turn out to have no rows.
bool names_evaluation_rows(const DataOptions& options);

/// Estimate of what a reader of training rows of `columns` columns holds of rows read ahead: text
/// and parsed columns both take some 8 bytes a cell.
int64_t read_ahead_bytes(const DataOptions& options, int64_t columns);

}  // namespace recmill::reader
