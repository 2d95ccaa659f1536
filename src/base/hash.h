// SPDX-License-Identifier: Apache-2.0
// Checksums and content hashes of bytes; not the hash of ids (that is preprocess/ops/sigrid_hash).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace recmill {

/// CRC-32C (Castagnoli, reflected), as checkpoints store it. `crc` continues an earlier call.
/// crc32c("123456789") == 0xE3069283.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);
/// The same by tables, for any processor; crc32c() has an instruction for it where there is one.
uint32_t crc32c_by_tables(std::span<const std::byte> bytes, uint32_t crc = 0);

/// 64-bit content hash of bytes: the definition of an id made of text. FNV-1a 64 with a SplitMix64
/// finaliser; the same on every machine.
uint64_t hash_bytes(std::string_view bytes);

}  // namespace recmill
