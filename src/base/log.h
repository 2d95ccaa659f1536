// SPDX-License-Identifier: Apache-2.0
// Messages for people, on stderr; stdout belongs to results.
#pragma once

#include <string>
#include <string_view>

namespace recmill {

/// One line each, written whole even when several threads log.
void log_info(std::string_view message);
void log_warning(std::string_view message);  // prefixed with "warning: "
/// The same message is written once a process.
void log_warning_once(const std::string& message);

}  // namespace recmill
