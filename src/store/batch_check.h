// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "device/thread_pool.h"
#include "schema/table_spec.h"
#include "store/embedding_store.h"

namespace recmill::store {

/// What every prepare() begins with. A row outside its table is an error that names feature, sample
/// (in the reader's order), row and table; a batch that does not fit its slices or `model` is a
/// bug, and CHECKed. Rows that are on a GPU alone are of their tables (BagsOnGpu).
Status check_batch(const ModelSpec& model, const Batch& batch);
/// The same on all threads: the error is that of the first feature that has one.
Status check_batch(const ModelSpec& model, const Batch& batch, ThreadPool& pool);

/// Of the rows alone: fails as check_batch().
Status check_rows(const ModelSpec& model, const SparseBatch& sparse, ThreadPool& pool);

/// Where each of this rank's slices begins, and the last one ends: a sample of the rank's batch.
void slice_begins(const Batch& batch, std::vector<int64_t>& begins);

}  // namespace recmill::store
