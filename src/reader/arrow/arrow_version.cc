// SPDX-License-Identifier: Apache-2.0
#include "reader/arrow/arrow_version.h"

#include <arrow/config.h>

namespace recmill::reader {

std::string arrow_version() {
  return arrow::GetBuildInfo().version_string;
}

}  // namespace recmill::reader
