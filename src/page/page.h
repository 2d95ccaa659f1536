// SPDX-License-Identifier: Apache-2.0
// What the HTML pages that verbs write have in common: self-contained, without scripts, for light
// and dark screens.
#pragma once

#include <string>

namespace recmill::page {

/// From the doctype to the heading. Colours are var(--c0) to var(--c5), of which the last is grey.
std::string page_head(const std::string& title);
inline constexpr const char* kPageEnd = "</body></html>\n";

std::string escaped(const std::string& text);
/// "1.23 ms", three digits in the unit that suits.
std::string time_text(double nanoseconds);

}  // namespace recmill::page
