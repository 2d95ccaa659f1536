// SPDX-License-Identifier: Apache-2.0
// Reader over files of row groups; Parquet, ORC and Arrow IPC plug in as RowGroupFile.
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "device/thread_pool.h"
#include "reader/columnar/row_group_file.h"
#include "reader/data_options.h"
#include "reader/reader.h"

namespace recmill::reader {

/// Opens `subset` of a data set in Parquet, ORC or Arrow IPC files, as open_reader() does; the
/// files must have the same columns, and all footers are read here. A thread decodes slices ahead
/// of the position on `pool`, column by column; memory is data.prefetch + 1 slices.
///
/// A row is bad that has no value or none that its role allows (append_cells()), or a bag whose
/// weights are not as many as its ids; damage, a missing column and a wrong type are no fault of a
/// row and always fail. Slices are decoded whole: with on_bad_row = "fail" a bad row fails on
/// whichever side of a split it is. A split by hash looks at values and not at their text, so it
/// parts other rows than that of a text file with the same content.
Result<std::unique_ptr<Reader>> open_columnar_reader(const DataOptions& options, Subset subset,
                                                     uint64_t seed, ThreadPool& pool, Files& files);

/// Opens a file of format parquet, orc or arrow_ipc.
Result<std::unique_ptr<RowGroupFile>> open_row_groups(DataFormat format, const std::string& path,
                                                      Files& files);

}  // namespace recmill::reader
