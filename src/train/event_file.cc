// SPDX-License-Identifier: Apache-2.0
#include "train/event_file.h"

#include <bit>
#include <chrono>
#include <span>

#include "base/hash.h"

namespace recmill::train {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

template <typename Word>
void put_fixed(std::string& out, Word word) {
  for (size_t i = 0; i < sizeof(Word); ++i) out.push_back(static_cast<char>(word >> (8 * i)));
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// Keys of protobuf fields: number * 8 + wire type.
constexpr char varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5;
constexpr char key(int field, char wire_type) {
  return static_cast<char>(field * 8 + wire_type);
}

void put_bytes(std::string& out, int field, std::string_view value) {
  out.push_back(key(field, bytes));
  put_varint(out, value.size());
  out.append(value);
}

std::string event_at(double wall_time) {
  std::string event(1, key(1, fixed64));
  put_fixed(event, std::bit_cast<uint64_t>(wall_time));
  return event;
}

/// The checksum of a text that may hold checksums itself.
uint32_t masked_crc(std::string_view text) {
  const uint32_t crc = crc32c(bytes_of(text));
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

}  // namespace

std::string framed_record(std::string_view data) {
  std::string record;
  put_fixed(record, static_cast<uint64_t>(data.size()));
  put_fixed(record, masked_crc(record));
  record.append(data);
  put_fixed(record, masked_crc(data));
  return record;
}

double EventFile::system_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Result<EventFile> EventFile::create_in(Files& files, const std::string& folder,
                                       const WallClock& clock) {
  RECMILL_RETURN_IF_ERROR(files.make_folder(folder));
  const double now = clock();
  const std::string first =
      folder + "/events.out.tfevents." + std::to_string(static_cast<int64_t>(now)) + ".recmill";
  std::string path = first;
  for (int number = 1; files.exists(path); ++number) path = first + "." + std::to_string(number);
  RECMILL_ASSIGN_OR_RETURN(auto file, files.create(path));
  EventFile result(std::move(file), clock);
  std::string event = event_at(now);
  put_bytes(event, 3, "brain.Event:2");
  RECMILL_RETURN_IF_ERROR(result.record(event));
  return result;
}

Status EventFile::scalar(std::string_view tag, int64_t step, double value) {
  std::string entry;  // Summary.Value: tag = 1, simple_value = 2
  put_bytes(entry, 1, tag);
  entry.push_back(key(2, fixed32));
  put_fixed(entry, std::bit_cast<uint32_t>(static_cast<float>(value)));
  std::string summary;  // Summary: value = 1, repeated
  put_bytes(summary, 1, entry);
  std::string event = event_at(clock_());
  event.push_back(key(2, varint));
  put_varint(event, static_cast<uint64_t>(step));
  put_bytes(event, 5, summary);
  return record(event);
}

Status EventFile::record(const std::string& event) {
  return file_->append(bytes_of(framed_record(event)));
}

Status EventFile::close() {
  return file_->close();
}

}  // namespace recmill::train
