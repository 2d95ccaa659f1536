// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"
#include "remote/message.h"

namespace recmill::remote {

/// A part of a checkpoint that a server is to write, of an image of its rows.
struct PartOrder {
  std::string folder;  // of the checkpoint while it is written; absolute
  int number = 0;
};

Bytes write_part_order(const PartOrder& order);
Result<PartOrder> read_part_order(const Bytes& body);

/// Whether an absolute path is a folder below another one, by their names alone. None is below "".
bool is_below(const std::string& root, const std::string& folder);

}  // namespace recmill::remote
