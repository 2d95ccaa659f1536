// SPDX-License-Identifier: Apache-2.0
// A small checkpoint with everything in it, for tests.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"

namespace recmill::checkpoint {

inline const EntrySpec kWeight{"table/C1/weight", ElementType::float32, {40, 3}};
inline const EntrySpec kState{"table/C1/state/sum", ElementType::float32, {40, 1}};
inline const EntrySpec kHalf{"table/C2/weight", ElementType::bfloat16, {5, 2}};
inline const EntrySpec kLayer{"dense/top.0.bias", ElementType::float32, {4}};
inline const EntrySpec kIds{"dictionary/C1", ElementType::uint64, {0}};

/// Value of element e of row r: differs between entries, rows and steps.
inline float small_value(int64_t step, const EntrySpec& spec, int64_t row, int64_t element) {
  return static_cast<float>(step * 1000 + static_cast<int64_t>(spec.name.size()) * 100 + row) +
         static_cast<float>(element) * 0.25f;
}

inline std::vector<std::byte> small_rows(int64_t step, const EntrySpec& spec, int64_t first,
                                         int64_t count) {
  std::vector<std::byte> bytes(count * spec.row_bytes());
  const int64_t size = size_of(spec.type);
  for (int64_t i = 0; i < count * spec.row_elements(); ++i) {
    const float value =
        small_value(step, spec, first + i / spec.row_elements(), i % spec.row_elements());
    // The upper bytes of the float, so that 16-bit types vary too.
    std::memcpy(bytes.data() + i * size, reinterpret_cast<const char*>(&value) + 4 - size, size);
  }
  return bytes;
}

/// Element `column` of every row.
inline std::vector<std::byte> small_column(int64_t step, const EntrySpec& spec, int64_t column) {
  const auto rows = small_rows(step, spec, 0, spec.rows());
  std::vector<std::byte> bytes;
  for (int64_t row = 0; row < spec.rows(); ++row) {
    const auto from = rows.begin() + row * spec.row_bytes() + column * size_of(spec.type);
    bytes.insert(bytes.end(), from, from + size_of(spec.type));
  }
  return bytes;
}

/// Writes step `step` as `parts` ranks do whose rows are split by row modulo `parts`, those of
/// kHalf by column.
inline Status write_small(Files& files, const std::string& folder, int64_t step, int parts = 1,
                          int64_t piece = 7) {
  RECMILL_ASSIGN_OR_RETURN(auto writer, Writer::create(files, folder, step));
  std::vector<PartContents> contents;
  for (int number = 0; number < parts; ++number) {
    RECMILL_ASSIGN_OR_RETURN(auto part, PartWriter::create(files, writer->path(), number));
    if (number == 0) {
      for (const EntrySpec& spec : {kLayer, kIds}) {
        RECMILL_RETURN_IF_ERROR(part->add(spec, small_rows(step, spec, 0, spec.rows())));
      }
    }
    if (parts == 1) {
      RECMILL_RETURN_IF_ERROR(part->add(kHalf, small_rows(step, kHalf, 0, kHalf.rows())));
    } else if (number < kHalf.shape[1]) {
      RECMILL_RETURN_IF_ERROR(part->add(kHalf, 0, small_column(step, kHalf, number), {number, 1}));
    }
    for (int64_t row = number; row < kWeight.rows();) {
      const int64_t first = row;
      std::vector<int64_t> rows;
      std::vector<std::byte> weights, state;
      for (int64_t i = 0; i < piece && row < kWeight.rows(); ++i, row += parts) {
        const auto weight = small_rows(step, kWeight, row, 1),
                   sum = small_rows(step, kState, row, 1);
        rows.push_back(row);
        weights.insert(weights.end(), weight.begin(), weight.end());
        state.insert(state.end(), sum.begin(), sum.end());
      }
      RECMILL_RETURN_IF_ERROR(parts == 1 ? part->add(kWeight, first, weights)
                                         : part->add(kWeight, rows, weights));
      RECMILL_RETURN_IF_ERROR(parts == 1 ? part->add(kState, first, state)
                                         : part->add(kState, rows, state));
    }
    RECMILL_ASSIGN_OR_RETURN(PartContents finished, part->finish());
    // Over the wire and back, as between ranks.
    RECMILL_ASSIGN_OR_RETURN(finished, decode_part(encode(finished)));
    contents.push_back(std::move(finished));
  }
  return writer->finish(std::move(contents), {{"iteration", step}, {"seed", 7}});
}

/// Writes one and opens it; a failure aborts.
inline std::unique_ptr<Reader> open_small(Files& files, const std::string& folder, int64_t step,
                                          int parts) {
  const Status written = write_small(files, folder, step, parts);
  RECMILL_CHECK(written.ok(), written.message());
  return *Reader::open(files, folder + "/" + folder_name(step));
}

/// Whether a checkpoint holds what write_small() wrote for its step.
inline Status check_small(Reader& reader) {
  RECMILL_RETURN_IF_ERROR(reader.verify());
  if (reader.properties().value("iteration", -1) != reader.step()) {
    return Status::Failed("wrong properties");
  }
  for (const EntrySpec& spec : {kWeight, kState, kHalf, kLayer, kIds}) {
    RECMILL_ASSIGN_OR_RETURN(const Entry* entry, reader.expect(spec));
    std::vector<std::byte> bytes(spec.rows() * spec.row_bytes());
    RECMILL_RETURN_IF_ERROR(reader.read(*entry, 0, spec.rows(), bytes));
    if (bytes != small_rows(reader.step(), spec, 0, spec.rows())) {
      return Status::Failed(spec.name + " is not what was written");
    }
  }
  return {};
}

}  // namespace recmill::checkpoint
