// SPDX-License-Identifier: Apache-2.0
// Criteo TSV, CSV and libsvm files as a Reader.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "device/thread_pool.h"
#include "reader/data_options.h"
#include "reader/reader.h"
#include "reader/text/text_parser.h"

namespace recmill::reader {

/// One thread reads windows of text ahead; read() parses on the pool with the chosen parser (both
/// give the same bits). Holds prefetch + 2 windows of text, whatever the size of the data.
Result<std::unique_ptr<Reader>> open_text_reader(const DataOptions& options, Subset subset,
                                                 uint64_t seed, ThreadPool& pool, Files& files,
                                                 ParserKind parser = ParserKind::fast);

}  // namespace recmill::reader
