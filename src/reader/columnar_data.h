// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/files.h"
#include "device/pool.h"
#include "reader/data_options.h"
#include "reader/reader.h"

namespace recmill::reader {

/// Opens `subset` of a data set in Parquet or Arrow IPC files, as open_reader() does. All footers
/// are read here. A bad cell always fails: on_bad_row is for text.
Result<std::unique_ptr<Reader>> open_columnar_data(const DataOptions& options, Subset subset,
                                                   uint64_t seed, Pool& pool, Files& files);

}  // namespace recmill::reader
