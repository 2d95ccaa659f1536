// SPDX-License-Identifier: Apache-2.0
// librecmill_rocksdb.so, which has all that sees RocksDB. A program opens it when rows are on a
// disk.
#pragma once

#include "base/status.h"
#include "disk/row_database.h"

namespace recmill::disk {

/// The library, opened by the first call in a process. Fails where it is missing, or is of another
/// build than the program.
Result<RowDatabases*> rocksdb_databases();

}  // namespace recmill::disk

/// The library's one function. Null where `build` is not its own rocksdb_build().
extern "C" recmill::disk::RowDatabases* recmill_rocksdb_library(const char* build);
