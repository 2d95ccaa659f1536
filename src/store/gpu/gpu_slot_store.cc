// SPDX-License-Identifier: Apache-2.0
#include "store/gpu/gpu_slot_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "store/cached/slots.h"

namespace recmill::store {
namespace {

constexpr const char* kRows = "rows on their way to slots";

bool is_rounded(const TableSpec& table) {
  return table.precision != RowPrecision::float32 && !table.frozen;
}

/// The shape of each slot table's rows.
std::vector<table::RowRecord> records_of(const ModelSpec& model, const SlotTables& tables) {
  std::vector<table::RowRecord> records;
  for (int k = 0; k < tables.count(); ++k)
    records.emplace_back(model.tables[tables.first_table(k)]);
  return records;
}

}  // namespace

std::vector<int64_t> GpuSlotStore::slot_bytes(const ModelSpec& model, const SlotTables& tables) {
  std::vector<int64_t> bytes;
  for (int k = 0; k < tables.count(); ++k) {
    TableSpec one = model.tables[tables.first_table(k)];
    one.rows = 1;
    const int64_t name = is_rounded(one) ? int64_t{sizeof(int64_t)} : 0;
    bytes.push_back(table::EmbeddingTable::bytes(one, table::RowShare(1, 0, 1)) + name);
  }
  return bytes;
}

GpuBytes GpuSlotStore::need(const ModelSpec& model, std::span<const int64_t> rows) {
  StagedArrays arrays;
  int64_t all = 0, rounded = 0, bytes = 0;
  for (size_t t = 0; t < rows.size(); ++t) {
    all += rows[t];
    rounded += is_rounded(model.tables[t]) ? rows[t] : 0;
    bytes += rows[t] * table::RowRecord(model.tables[t]).bytes();
  }
  arrays.add<int32_t>(all);
  arrays.add<int64_t>(rounded);
  GpuBytes one = arrays.need();
  one += {reserved_bytes(bytes), reserved_bytes(bytes)};
  return one * 2;
}

MakeSlots GpuSlotStore::maker(uint64_t seed, std::shared_ptr<Gpu> gpu, GpuStoreKernels kernels,
                              ThreadPool& pool, GpuStream& stream) {
  return [=, &pool, &stream](const ModelSpec& model, const SlotTables& tables,
                             const CacheSize& size) -> Result<std::unique_ptr<SlotStore>> {
    std::unique_ptr<GpuSlotStore> slots(new GpuSlotStore(model, tables, seed, size, gpu, stream));
    RECMILL_RETURN_IF_ERROR(slots->open());
    RECMILL_ASSIGN_OR_RETURN(auto copier, kernels::GpuRecordCopier::make(*gpu, kernels.compile));
    slots->copier_ = std::make_unique<kernels::GpuRecordCopier>(std::move(copier));
    RECMILL_RETURN_IF_ERROR(slots->make_store(model, seed, size, kernels, pool));
    return std::unique_ptr<SlotStore>(std::move(slots));
  };
}

GpuSlotStore::GpuSlotStore(const ModelSpec& model, const SlotTables& tables, uint64_t seed,
                           const CacheSize& size, std::shared_ptr<Gpu> gpu, GpuStream& stream)
    : tables_(tables),
      records_(records_of(model, tables)),
      states_(model, tables, seed, size.slots),
      gpu_(std::move(gpu)),
      stream_(stream) {
  // A step is planned P + 1 steps ahead of the last one whose rows have left.
  const auto steps = static_cast<size_t>(size.prefetch) + 3;
  filled_.resize(steps);
  ended_.resize(steps);
}

Status GpuSlotStore::open() {
  for (Transfer* const transfer : {&in_, &out_}) {
    RECMILL_ASSIGN_OR_RETURN(transfer->stream, gpu_->open_stream(StreamPriority::high));
    RECMILL_ASSIGN_OR_RETURN(transfer->used, gpu_->open_event());
  }
  for (auto* const events : {&filled_, &ended_}) {
    for (GpuEvent& event : *events) {
      RECMILL_ASSIGN_OR_RETURN(event, gpu_->open_event());
    }
  }
  return {};
}

Status GpuSlotStore::make_store(ModelSpec model, uint64_t seed, const CacheSize& size,
                                const GpuStoreKernels& kernels, ThreadPool& pool) {
  ModelSpec inner = Slots::inner_model(model, tables_, size.slots);
  for (int k = 0; k < tables_.count(); ++k) {
    const TableSpec& first = inner.tables[tables_.first_table(k)];
    const auto of_slots =
        table::EmbeddingTable::without_rows(first, seed, table::RowShare(first.rows, 0, 1));
    RECMILL_ASSIGN_OR_RETURN(auto rows, table::GpuRows::allocate(of_slots, *gpu_));
    rows_.push_back(std::move(rows));
    row_of_slot_.emplace_back();
    if (!is_rounded(first)) continue;
    RECMILL_ASSIGN_OR_RETURN(
        row_of_slot_.back(),
        gpu_->allocate(static_cast<size_t>(first.rows) * sizeof(int64_t), "table " + first.name));
  }
  GpuSlotTables slots;
  for (int t = 0; t < tables_.tables(); ++t) {
    const int k = tables_.slot_table_of(t);
    inner.tables[t].name = model.tables[t].name;  // which random numbers are keyed by
    slots.tables.push_back(table::EmbeddingTable::without_rows(
        inner.tables[t], seed, table::RowShare(inner.tables[t].rows, 0, 1)));
    slots.rows.push_back(rows_[k]);
    slots.row_of_slot.push_back(row_of_slot_[k].address<i64>());
    slots.names.push_back(&states_.names(k));
  }
  RECMILL_ASSIGN_OR_RETURN(store_, GpuStore::over_slots(std::move(inner), std::move(slots), gpu_,
                                                        kernels, pool, stream_));
  return {};
}

/// Where the rows belong, once what the transfer had before was used; lists of neighbours in one
/// slot table are one.
Status GpuSlotStore::stage(std::span<const RowInSlot> rows, const RowRecords& records,
                           Transfer& transfer) {
  RECMILL_RETURN_IF_ERROR(transfer.used.synchronize());
  int64_t rounded = 0;
  for (const RowRecords::OfTable& of : records.tables())
    if (row_of_slot_[tables_.slot_table_of(of.table)].size() > 0)
      rounded += static_cast<int64_t>(of.count);
  StagedArrays& arrays = transfer.arrays;
  arrays.clear();
  const auto slots = arrays.add<int32_t>(std::ssize(rows));
  const auto named = arrays.add<int64_t>(rounded);
  RECMILL_RETURN_IF_ERROR(arrays.allocate(*gpu_, kRows));
  const size_t bytes = records.bytes().size();
  RECMILL_RETURN_IF_ERROR(reserve(transfer.records, bytes, *gpu_, kRows));
  RECMILL_RETURN_IF_ERROR(reserve(transfer.records_of_host, bytes, *gpu_, kRows));
  for (size_t i = 0; i < rows.size(); ++i) arrays.host(slots)[i] = rows[i].slot;
  transfer.lists.clear();
  size_t at_named = 0, end = 0;  // of the list before, in bytes
  int last = -1;                 // its slot table
  for (const RowRecords::OfTable& of : records.tables()) {
    const int k = tables_.slot_table_of(of.table);
    const bool is_named = row_of_slot_[k].size() > 0;
    if (k != last || of.begin != end) {
      kernels::gpu::RecordList& list = transfer.lists.emplace_back();
      list.rows = rows_[k].records();
      list.row_state = rows_[k].row_state();
      list.row_of_slot = row_of_slot_[k].address<i64>();
      list.records = transfer.records.address<u8>() + of.begin;
      list.slots = arrays.device(slots) + of.first;
      list.named = is_named ? arrays.device(named) + at_named : nullptr;
      list.stride = static_cast<i32>(records_[k].storage().stride);
      list.record_bytes = static_cast<i32>(records_[k].bytes());
      list.row_state_at = list.record_bytes - static_cast<i32>(sizeof(float));
    }
    transfer.lists.back().count += static_cast<i64>(of.count);
    last = k;
    end = of.begin + of.bytes;
    if (!is_named) continue;
    std::ranges::copy(records.rows().subspan(of.first, of.count),
                      arrays.host(named).begin() + static_cast<std::ptrdiff_t>(at_named));
    at_named += of.count;
  }
  return arrays.send(transfer.stream);
}

Status GpuSlotStore::send(std::span<const RowInSlot> rows, const RowRecords& records) {
  if (rows.empty()) return {};
  RECMILL_RETURN_IF_ERROR(stage(rows, records, in_));
  const auto bytes = records.bytes();
  std::memcpy(in_.records_of_host.as<std::byte>().data(), bytes.data(), bytes.size());
  RECMILL_RETURN_IF_ERROR(in_.stream.to_device(in_.records, in_.records_of_host, bytes.size()));
  RECMILL_RETURN_IF_ERROR(
      copier_->copy(in_.lists, kernels::GpuRecordCopier::Way::to_slots, in_.stream));
  return in_.used.record(in_.stream);
}

Status GpuSlotStore::fill(int64_t step, std::span<const RowInSlot> rows,
                          const RowRecords& records) {
  for (const RowInSlot& row : rows) states_.fill(row);
  RECMILL_RETURN_IF_ERROR(send(rows, records));
  return filled_[at(step)].record(in_.stream);
}

Status GpuSlotStore::write(std::span<const RowInSlot> rows, const RowRecords& records) {
  RECMILL_RETURN_IF_ERROR(send(rows, records));
  return in_.stream.synchronize();
}

Status GpuSlotStore::read(std::span<const RowInSlot> rows, RowRecords& records) {
  if (rows.empty()) return {};
  RECMILL_RETURN_IF_ERROR(stage(rows, records, out_));
  const auto bytes = records.bytes();
  RECMILL_RETURN_IF_ERROR(
      copier_->copy(out_.lists, kernels::GpuRecordCopier::Way::from_slots, out_.stream));
  RECMILL_RETURN_IF_ERROR(out_.stream.to_host(out_.records_of_host, out_.records, bytes.size()));
  RECMILL_RETURN_IF_ERROR(out_.used.record(out_.stream));
  RECMILL_RETURN_IF_ERROR(out_.stream.synchronize());
  std::memcpy(bytes.data(), out_.records_of_host.as<std::byte>().data(), bytes.size());
  return {};
}

}  // namespace recmill::store
