// SPDX-License-Identifier: Apache-2.0
#include "reader/open_reader.h"

#include "reader/text_reader.h"

namespace recmill::reader {

Result<std::unique_ptr<Reader>> open_reader(const DataOptions& options, Subset subset,
                                            uint64_t seed, Pool& pool, Files& files) {
  switch (options.format) {
    case DataFormat::criteo_tsv:
    case DataFormat::csv:
      return open_text_reader(options, subset, seed, pool, files);
    default:
      break;
  }
  return Status::BadRequest("data.format: no reader is built for " +
                            std::string(name_of(options.format)));
}

}  // namespace recmill::reader
