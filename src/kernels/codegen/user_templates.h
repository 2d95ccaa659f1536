// SPDX-License-Identifier: Apache-2.0
// Templates of embedding_pool in files of a user's own (recmill_pool_template.h).
#pragma once

#include <span>
#include <string>

#include "base/files.h"
#include "base/status.h"
#include "kernels/codegen/library_cache.h"
#include "kernels/embedding_pool/pool_template.h"

namespace recmill::kernels::codegen {

/// Recmill's templates, then those of the files, in order; they stay for the rest of the process.
/// Fails, naming the file, where it cannot be read or compiled (as LibraryCache::load), or what it
/// says of its template cannot be.
Result<std::span<const PoolTemplate>> pool_templates_with(std::span<const std::string> paths,
                                                          LibraryCache& cache, Files& files);

/// A digest of the files' texts, in order; of no file empty. Fails, naming the file that cannot be
/// read.
Result<std::string> templates_digest(std::span<const std::string> paths, Files& files);

}  // namespace recmill::kernels::codegen
