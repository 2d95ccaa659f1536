// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_lines.h"

#include "base/json/json.h"

namespace recmill {

Result<JsonLines> JsonLines::append_to(Files& files, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(auto file, files.open_append(path));
  return JsonLines(std::move(file));
}

Status JsonLines::write(const Json& object) {
  const std::string line = object.dump() + "\n";
  return file_->append(std::as_bytes(std::span(line)));
}

Status JsonLines::close() {
  return file_->close();
}

Result<std::string> quote(const std::string& text) {
  std::string result = Json(text).dump(-1, ' ', false, Json::error_handler_t::ignore);
  if (Json::parse(result) != text) return Status::Failed("is not UTF-8 text");
  // JSON leaves this one control character as it is, and TOML does not.
  for (size_t at; (at = result.find('\x7F')) != std::string::npos;) {
    result.replace(at, 1, "\\u007F");
  }
  return result;
}

Result<Json> read_json(Files& files, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(files, path));
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return Status::BadRequest(path + ": is not valid JSON");
  return value;
}

}  // namespace recmill
