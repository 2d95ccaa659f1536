// SPDX-License-Identifier: Apache-2.0
// A cluster on disk: docs/formats/cluster.md.
#pragma once

#include <string>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "base/status.h"
#include "schema/cluster_spec.h"

namespace recmill {

Json to_json(const ClusterSpec& cluster);
/// Bad requests name `source` and what is wrong: a hole in a matrix, a number that is none of a
/// link.
Result<ClusterSpec> cluster_from_json(const Json& json, const std::string& source);

/// A line a device; of at most 16 also the links, in Mbit/s and microseconds a message.
std::string table_of(const ClusterSpec& cluster);

Status write_cluster(Files& files, const std::string& path, const ClusterSpec& cluster);
Result<ClusterSpec> read_cluster(Files& files, const std::string& path);

}  // namespace recmill
