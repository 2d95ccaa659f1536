// SPDX-License-Identifier: Apache-2.0
// The content of a file, decompressed where its name ends in .gz, .bz2 or .zst, in
// upper or lower case.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"

namespace recmill::reader {

/// A place in a compressed file where decompression may start: the first byte of a frame or stream,
/// or, inside a gzip member, a block of deflate with the 32 KiB that it may refer to.
struct AccessPoint {
  uint64_t offset = 0;      // of the next decompressed byte
  uint64_t compressed = 0;  // of the next compressed byte
  uint8_t bits = 0;         // deflate: bits of the byte before it that are not used yet ...
  uint8_t bits_value = 0;   // ... and their value
  bool begins_frame = false;
  std::string window;  // deflate: the decompressed bytes before it, 32 KiB at most
  bool operator==(const AccessPoint&) const = default;
};

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// The next bytes; fewer than asked for only at the end. Damage is an error that names the file.
  virtual Result<size_t> read(std::span<char> buffer) = 0;
  /// Moves to a byte of the decompressed content. In a compressed file what lies between it and the
  /// access point before it, or the place where the stream is, is decompressed; going back over
  /// more than 32 MiB so is a warning, once for a file.
  virtual Status seek(uint64_t offset) = 0;
  /// Compressed: adds to `points` while it is read from the start, one for every `spacing` bytes
  /// decompressed or somewhat more. Zstandard has none inside a frame, bzip2 none inside a stream.
  virtual void collect(uint64_t /*spacing*/, std::vector<AccessPoint>& /*points*/) {}
  /// Points of this file in ascending order, which outlive the stream, for seek().
  virtual void use(std::span<const AccessPoint> /*points*/) {}
};

Result<std::unique_ptr<ByteStream>> open_byte_stream(Files& files, const std::string& path);

}  // namespace recmill::reader
