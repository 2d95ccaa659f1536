// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/json/json.h"

namespace recmill::checkpoint {
namespace {

constexpr size_t kHeaderBytes = 47;
constexpr char kMagic[] = "recmill-checkpoint ";

std::string header_of(char version, const std::string& text) {
  return fmt::format("{}{} {:08x} {:016}\n", kMagic, version,
                     crc32c(std::as_bytes(std::span(text))), text.size());
}

Json to_json(const RowRule& rule) {
  if (rule.kind == RowRule::Kind::constant) return {{"kind", "constant"}, {"value", rule.value}};
  return {{"kind", "uniform"}, {"value", rule.value}, {"seed", rule.seed}, {"stream", rule.stream}};
}

bool read_rule(const Json& json, const EntrySpec& entry, std::optional<RowRule>& rule) {
  if (json.is_null()) return true;
  if (!json.is_object() || !json.value("value", Json()).is_number()) return false;
  rule.emplace();
  rule->value = json["value"].get<float>();
  if (json.value("kind", Json()) == "uniform") {
    rule->kind = RowRule::Kind::uniform;
    for (const auto& [key, number] : {std::pair{"seed", &rule->seed}, {"stream", &rule->stream}}) {
      if (!json.value(key, Json()).is_number_unsigned()) return false;
      *number = json[key].get<uint64_t>();
    }
  } else if (json.value("kind", Json()) != "constant") {
    return false;
  }
  return can_make(*rule, entry);
}

Json to_json(const Entry& entry) {
  Json blocks = Json::array();
  for (const Block& b : entry.blocks) {
    Json block = {b.part, b.offset, b.first_row, b.last_row, b.rows, b.listed ? 1 : 0, b.crc};
    if (b.columns.count > 0) {
      block.push_back(b.columns.first);
      block.push_back(b.columns.count);
    }
    blocks.push_back(std::move(block));
  }
  Json json = {{"name", entry.spec.name},
               {"type", name_of(entry.spec.type)},
               {"shape", entry.spec.shape},
               {"blocks", std::move(blocks)}};
  if (entry.rule) json["rule"] = to_json(*entry.rule);
  return json;
}

bool is_list_of_integers(const Json& json, size_t at_least) {
  return json.is_array() && json.size() >= at_least &&
         std::all_of(json.begin(), json.end(), [](const Json& item) {
           return item.is_number_integer() && item.get<int64_t>() >= 0;
         });
}

bool read_entry(const Json& json, Entry& entry) {
  if (!json.is_object() || !json.value("name", Json()).is_string() ||
      !is_list_of_integers(json.value("shape", Json()), 1) ||
      !json.value("blocks", Json()).is_array()) {
    return false;
  }
  entry.spec.name = json["name"].get<std::string>();
  entry.spec.shape = json["shape"].get<std::vector<int64_t>>();
  bool known = false;
  for (const auto& [type, name] : EnumNames<ElementType>::names) {
    if (json.value("type", Json()) != std::string(name)) continue;
    entry.spec.type = type;
    known = true;
  }
  for (const Json& block : json["blocks"]) {
    if (!is_list_of_integers(block, 7) || (block.size() != 7 && block.size() != 9)) return false;
    const auto n = block.get<std::vector<int64_t>>();
    entry.blocks.push_back({n[0], n[1], n[2], n[3], n[4], n[5] != 0, static_cast<uint32_t>(n[6])});
    if (n.size() == 7) continue;
    entry.blocks.back().columns = {n[7], n[8]};
    const int64_t all = entry.spec.row_elements();
    if (n[7] >= all || n[8] < 1 || n[8] > all - n[7]) return false;
  }
  return known && read_rule(json.value("rule", Json()), entry.spec, entry.rule);
}

bool read_part(const Json& json, Part& part) {
  if (!json.is_object() || !json.value("file", Json()).is_string() ||
      !json.value("bytes", Json()).is_number_integer()) {
    return false;
  }
  part = {json["file"].get<std::string>(), json["bytes"].get<int64_t>()};
  return true;
}

bool read_manifest(const Json& json, Manifest& manifest) {
  if (!json.is_object() || !json.value("step", Json()).is_number_integer() ||
      !json.contains("properties") || !json.value("parts", Json()).is_array() ||
      !json.value("entries", Json()).is_array()) {
    return false;
  }
  manifest.step = json["step"].get<int64_t>();
  manifest.properties = json["properties"];
  for (const Json& part : json["parts"]) {
    if (!read_part(part, manifest.parts.emplace_back())) return false;
  }
  for (const Json& entry : json["entries"]) {
    if (!read_entry(entry, manifest.entries.emplace_back())) return false;
  }
  return true;
}

/// Whether blocks lie inside their parts, which is all a reader needs to be safe.
Status check_places(const Manifest& manifest) {
  for (const Entry& entry : manifest.entries) {
    for (const Block& block : entry.blocks) {
      if (block.part >= static_cast<int64_t>(manifest.parts.size()) ||
          block.offset + block.bytes(entry.spec) > manifest.parts[block.part].bytes) {
        return Status::Failed("entry '" + entry.spec.name + "' has a block outside its part");
      }
    }
  }
  return {};
}

Status wrong(const Entry& entry, const std::string& what) {
  return Status::Failed("entry '" + entry.spec.name + "': " + what);
}

/// Whether `blocks`, all of the same columns, have every row once.
Status check_rows(const Entry& entry, const std::vector<const Block*>& blocks) {
  int64_t rows = 0, next = 0;
  bool listed = false;
  for (const Block* block : blocks) listed = listed || block->listed;
  for (const Block* const at : blocks) {
    const Block& block = *at;
    if (block.rows < 1 || block.last_row < block.first_row || block.last_row >= entry.spec.rows() ||
        block.rows > block.last_row - block.first_row + 1 ||
        (!block.listed && block.rows <= block.last_row - block.first_row)) {
      return wrong(entry, "a block of rows " + std::to_string(block.first_row) + " to " +
                              std::to_string(block.last_row) + " is impossible");
    }
    const bool skips = entry.rule && block.first_row > next;
    if (!listed && !skips && block.first_row != next) {
      return wrong(entry, "row " + std::to_string(std::min(next, block.first_row)) +
                              (block.first_row < next ? " is there twice" : " is missing"));
    }
    next = block.last_row + 1;
    rows += block.rows;
  }
  const bool all_are_there = entry.rule ? rows <= entry.spec.rows() : rows == entry.spec.rows();
  return all_are_there ? Status()
                       : wrong(entry, std::to_string(rows) + " rows are there, of " +
                                          std::to_string(entry.spec.rows()));
}

/// Whether every element is there once: the ranges of columns make up a row, and each has all rows.
Status check_elements(const Entry& entry) {
  std::map<std::pair<int64_t, int64_t>, std::vector<const Block*>> pieces;  // by range of columns
  for (const Block& block : entry.blocks) {
    const ColumnRange columns = block.columns_of(entry.spec);
    pieces[{columns.first, columns.count}].push_back(&block);
  }
  if (pieces.empty()) return check_rows(entry, {});
  int64_t next = 0;
  for (const auto& [columns, blocks] : pieces) {
    if (columns.first != next) {
      return wrong(entry, "column " + std::to_string(std::min(next, columns.first)) +
                              (columns.first < next ? " is there twice" : " is missing"));
    }
    next += columns.second;
    RECMILL_RETURN_IF_ERROR(check_rows(entry, blocks));
  }
  return next == entry.spec.row_elements()
             ? Status()
             : wrong(entry, "column " + std::to_string(next) + " is missing");
}

}  // namespace

int64_t size_of(ElementType type) {
  switch (type) {
    case ElementType::float64:
    case ElementType::int64:
    case ElementType::uint64:
      return 8;
    case ElementType::float32:
    case ElementType::uint32:
      return 4;
    case ElementType::bfloat16:
    case ElementType::float16:
      return 2;
    case ElementType::uint8:
      return 1;
  }
  return 0;
}

int64_t EntrySpec::row_elements() const {
  int64_t elements = 1;
  for (size_t i = 1; i < shape.size(); ++i) elements *= shape[i];
  return elements;
}

std::string EntrySpec::text() const {
  std::string text(name_of(type));
  text += " [";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

std::string encode(const Manifest& manifest) {
  Json parts = Json::array(), entries = Json::array();
  for (const Part& part : manifest.parts) {
    parts.push_back({{"file", part.file}, {"bytes", part.bytes}});
  }
  for (const Entry& entry : manifest.entries) entries.push_back(to_json(entry));
  const Json json = {{"step", manifest.step},
                     {"properties", *manifest.properties},
                     {"parts", std::move(parts)},
                     {"entries", std::move(entries)}};
  // Names may hold bytes that are no UTF-8; they must not stop a run from being saved.
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  const bool has_rules = std::ranges::any_of(
      manifest.entries, [](const Entry& entry) { return entry.rule.has_value(); });
  return header_of(has_rules ? '2' : '1', text) + text;
}

Result<Manifest> decode_incomplete(const std::string& bytes) {
  if (bytes.size() < kHeaderBytes) return Status::Failed("is cut short");
  const std::string text = bytes.substr(kHeaderBytes);
  if (bytes.compare(0, sizeof(kMagic) - 1, kMagic) != 0) {
    return Status::Failed("is not the manifest of a checkpoint");
  }
  const char version = bytes[sizeof(kMagic) - 1];
  if ((version != '1' && version != '2') || bytes[sizeof(kMagic)] != ' ') {
    return Status::Failed("has another version of the format: " + bytes.substr(0, 21));
  }
  if (bytes.compare(0, kHeaderBytes, header_of(version, text)) != 0) {
    return Status::Failed("is damaged: its checksum or length is wrong");
  }
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  Manifest manifest;
  if (json.is_discarded() || !read_manifest(json, manifest)) {
    return Status::Failed("is not what a manifest should be");
  }
  RECMILL_RETURN_IF_ERROR(check_places(manifest));
  return manifest;
}

Result<Manifest> decode(const std::string& bytes) {
  RECMILL_ASSIGN_OR_RETURN(Manifest manifest, decode_incomplete(bytes));
  for (const Entry& entry : manifest.entries) RECMILL_RETURN_IF_ERROR(check_elements(entry));
  return manifest;
}

Status arrange(std::vector<Entry>& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.spec.name < b.spec.name; });
  std::vector<Entry> joined;
  for (Entry& entry : entries) {
    if (joined.empty() || joined.back().spec.name != entry.spec.name) {
      joined.push_back(std::move(entry));
      continue;
    }
    if (joined.back().spec != entry.spec) {
      return Status::Failed("entry '" + entry.spec.name + "' has two types or shapes");
    }
    if (joined.back().rule != entry.rule)
      return Status::Failed("entry '" + entry.spec.name + "' has two rules");
    joined.back().blocks.insert(joined.back().blocks.end(), entry.blocks.begin(),
                                entry.blocks.end());
  }
  for (Entry& entry : joined) {
    std::sort(entry.blocks.begin(), entry.blocks.end(), [](const Block& a, const Block& b) {
      return std::tie(a.first_row, a.part, a.offset) < std::tie(b.first_row, b.part, b.offset);
    });
    RECMILL_RETURN_IF_ERROR(check_elements(entry));
  }
  entries = std::move(joined);
  return {};
}

std::string folder_name(int64_t step) {
  return fmt::format("step-{:012}", step);
}

}  // namespace recmill::checkpoint
