// SPDX-License-Identifier: Apache-2.0
// The content of a file, decompressed where its name ends in .gz or .zst.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/files.h"

namespace recmill::reader {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// The next bytes; fewer than asked for only at the end. Damage is an error that names the file.
  virtual Result<size_t> read(std::span<char> buffer) = 0;
  /// Moves to a byte of the decompressed content. Forward in a compressed file decompresses what
  /// lies between; backward starts at the nearest place where decompression may start.
  virtual Status seek(uint64_t offset) = 0;
};

Result<std::unique_ptr<ByteStream>> open_byte_stream(Files& files, const std::string& path);

/// True for names that end in .gz or .zst.
bool is_compressed(const std::string& path);

}  // namespace recmill::reader
