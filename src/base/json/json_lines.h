// SPDX-License-Identifier: Apache-2.0
// One JSON object a line, appended through the file seam.
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "base/json/json_fwd.h"

namespace recmill {

class JsonLines {
 public:
  static Result<JsonLines> append_to(Files& files, const std::string& path);
  Status write(const Json& object);
  Status close();

 private:
  explicit JsonLines(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  std::unique_ptr<WritableFile> file_;
};

/// `text` in quotes, as JSON and TOML both read it. It must be UTF-8.
Result<std::string> quote(const std::string& text);

/// Parses a whole file that a user may have written: what is not JSON is a bad request. Errors name
/// the path.
Result<Json> read_json(Files& files, const std::string& path);

}  // namespace recmill
