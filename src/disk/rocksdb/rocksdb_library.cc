// SPDX-License-Identifier: Apache-2.0
#include "disk/rocksdb/rocksdb_library.h"

#include <dlfcn.h>

#include <string>

#include "disk/rocksdb/rocksdb_build.h"

namespace recmill::disk {
namespace {

Result<RowDatabases*> open_library(const char* file) {
  void* const opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    return Status::Failed(std::string("RocksDB: ") + dlerror() + "; " + file +
                          " belongs beside a program that was built, or into lib/recmill of an "
                          "installation: `make build` and `make install` put it there");
  const auto entry = reinterpret_cast<decltype(&recmill_rocksdb_library)>(
      dlsym(opened, "recmill_rocksdb_library"));
  RowDatabases* const databases = entry == nullptr ? nullptr : entry(rocksdb_build());
  if (databases == nullptr)
    return Status::Failed(std::string("RocksDB: ") + file +
                          " is of another build of Recmill than this program; build or install "
                          "both anew");
  return databases;
}

}  // namespace

Result<RowDatabases*> rocksdb_databases() {
  static const Result<RowDatabases*> databases = open_library("librecmill_rocksdb.so");
  return databases;
}

}  // namespace recmill::disk
