// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace recmill::remote {

/// A server's status (docs/formats/row_service.md) in the text format of Prometheus.
std::string metrics_text(const std::string& status);

}  // namespace recmill::remote
