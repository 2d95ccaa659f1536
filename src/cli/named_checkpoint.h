// SPDX-License-Identifier: Apache-2.0
// Checkpoints as the user names them, and as verbs show them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "checkpoint/folder.h"

namespace recmill::cli {

/// How options that take one are described.
inline constexpr char kNamedCheckpoint[] =
    "a checkpoint's folder, or a run's: its newest whole checkpoint";

/// `which`: of a run's.
Result<checkpoint::Chosen> choose_checkpoint(const std::string& path, checkpoint::Which which);
Result<std::unique_ptr<checkpoint::Reader>> open_named_checkpoint(const std::string& path);

/// A checksum as 8 hexadecimal digits.
std::string crc_text(uint32_t crc);

}  // namespace recmill::cli
