// SPDX-License-Identifier: Apache-2.0
// Where the rows of a run on a GPU are stored. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "run/resolved_run.h"
#include "store/gpu/gpu_memory.h"
#include "store/gpu/held_tables.h"

namespace recmill::train {

/// Bytes of a GPU's memory that the run counts on, of those that are free.
int64_t usable_bytes(const GpuRunOptions& options, int64_t free);

/// The largest batches that the run's store is given, as far as that is known before its data is
/// read: bags are as sample_lookups() says. Where there are no epochs none is trained. Certain
/// where lookups are.
store::GpuBatches gpu_batches(const ResolvedRun& run);

/// [tables] As gpu.rows says of the tables that are held, where `besides` of `usable` bytes of the
/// GPU's memory are for other things. Of "fit": store::fit_tables(), by the bytes that
/// sample_lookups() of a table's features read.
std::vector<store::RowsAt> place_gpu_rows(const ResolvedRun& run, const store::HeldTables& held,
                                          int64_t besides, int64_t usable);

/// For people: how many of the tables that are held are stored where, what they take, and which are
/// in the host's memory.
std::string placed_text(const ModelSpec& model, const store::HeldTables& held,
                        std::span<const store::RowsAt> rows);

}  // namespace recmill::train
