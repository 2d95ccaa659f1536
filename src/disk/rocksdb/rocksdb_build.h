// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace recmill::disk {

/// What a program and its librecmill_rocksdb.so have to be alike in.
const char* rocksdb_build();

}  // namespace recmill::disk
