// SPDX-License-Identifier: Apache-2.0
// Lines of C++ source, indented by their braces.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace recmill::kernels::codegen {

class SourceWriter {
 public:
  /// A line; fmt's grammar, so that a brace of the source is written twice. A line that begins with
  /// a closing brace is one level further out, lines behind one that ends with an opening brace
  /// one level further in.
  template <class... Arguments>
  void operator()(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    line(fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  void line(const std::string& text) {
    if (!text.empty() && text.front() == '}') --level_;
    if (!text.empty()) text_.append(2 * level_, ' ').append(text);
    text_ += '\n';
    if (!text.empty() && text.back() == '{') ++level_;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  size_t level_ = 0;
};

}  // namespace recmill::kernels::codegen
