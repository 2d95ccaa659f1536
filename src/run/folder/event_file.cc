// SPDX-License-Identifier: Apache-2.0
#include "run/folder/event_file.h"

#include <bit>
#include <chrono>
#include <span>

#include "base/hash.h"

namespace recmill::train {
namespace {

constexpr std::string_view kFilePrefix = "events.out.tfevents.";

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

template <typename Word>
Word get_fixed(std::string_view text) {
  Word word = 0;
  for (size_t i = 0; i < sizeof(Word); ++i) {
    word |= static_cast<Word>(static_cast<unsigned char>(text[i])) << (8 * i);
  }
  return word;
}

/// Takes a varint from the front of `text`; 0 at its end.
uint64_t take_varint(std::string_view& text) {
  uint64_t value = 0;
  for (int shift = 0; !text.empty() && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

/// Calls found(field, number, bytes) for each field of a protobuf message: number of a varint,
/// bytes of a length-delimited one.
void for_each_field(std::string_view text,
                    const std::function<void(int, uint64_t, std::string_view)>& found) {
  const auto take = [&](uint64_t size) {
    const auto part = text.substr(0, size);
    text.remove_prefix(part.size());
    return part;
  };
  while (!text.empty()) {
    const uint64_t key = take_varint(text);
    const auto field = static_cast<int>(key >> 3);
    const auto wire_type = static_cast<char>(key & 7);
    if (wire_type == varint) {
      found(field, take_varint(text), {});
    } else {
      const uint64_t size = wire_type == bytes ? take_varint(text) : wire_type == fixed64 ? 8 : 4;
      found(field, 0, take(size));
    }
  }
}

struct Scalar {
  std::string tag;  // empty: no scalar
  int64_t step = 0;
};

Scalar scalar_of(std::string_view event) {
  Scalar scalar;
  for_each_field(event, [&](int field, uint64_t number, std::string_view text) {
    if (field == 2) scalar.step = static_cast<int64_t>(number);
    if (field != 5) return;
    for_each_field(text, [&](int, uint64_t, std::string_view value) {
      for_each_field(value, [&](int part, uint64_t, std::string_view tag) {
        if (part == 1) scalar.tag = tag;
      });
    });
  });
  return scalar;
}

/// The first record of `text`, framed and not; empty when it is not whole.
std::pair<std::string_view, std::string_view> first_record(std::string_view text) {
  constexpr size_t kBefore = 12, kAfter = 4;  // length and its checksum; checksum of the data
  if (text.size() < kBefore + kAfter) return {};
  const auto size = get_fixed<uint64_t>(text);
  if (size > text.size() - kBefore - kAfter) return {};
  const std::string_view data = text.substr(kBefore, size);
  if (get_fixed<uint32_t>(text.substr(8)) != masked_crc(text.substr(0, 8)) ||
      get_fixed<uint32_t>(text.substr(kBefore + size)) != masked_crc(data)) {
    return {};
  }
  return {text.substr(0, kBefore + size + kAfter), data};
}

}  // namespace

Status keep_events(Files& files, const std::string& folder,
                   const std::function<bool(std::string_view tag, int64_t step)>& keep) {
  if (!files.exists(folder)) return {};
  RECMILL_ASSIGN_OR_RETURN(const auto names, files.list(folder));
  for (const std::string& name : names) {
    if (!name.starts_with(kFilePrefix)) continue;
    RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(files, folder + "/" + name));
    std::string kept;
    for (std::string_view rest = text; !rest.empty();) {
      const auto [framed, event] = first_record(rest);
      if (framed.empty()) break;
      const Scalar scalar = scalar_of(event);
      if (scalar.tag.empty() || keep(scalar.tag, scalar.step)) kept += framed;
      rest.remove_prefix(framed.size());
    }
    if (kept != text) RECMILL_RETURN_IF_ERROR(write_atomically(files, folder + "/" + name, kept));
  }
  return {};
}

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
  const std::string first = folder + "/" + std::string(kFilePrefix) +
                            std::to_string(static_cast<int64_t>(now)) + ".recmill";
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
