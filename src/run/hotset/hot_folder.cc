// SPDX-License-Identifier: Apache-2.0
#include "run/hotset/hot_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "base/json/json_lines.h"
#include "base/paths.h"
#include "hotset_plan/hot_set_file.h"
#include "reader/data_files.h"
#include "reader/open_reader.h"
#include "run/checkpoint/row_digest.h"
#include "run/hotset/hot_problem.h"

namespace recmill::train {
namespace {

constexpr int64_t kManifestVersion = 1;
constexpr const char* kFolderKey = "hotset.folder";

/// A checksum of pieces all over the file: that it was replaced is seen without reading all of it.
Result<std::string> sampled_checksum(const ReadableFile& file) {
  constexpr uint64_t kPieces = 256, kPiece = 4096;
  std::array<std::byte, kPiece> piece;
  uint32_t checksum = 0;
  const uint64_t last = file.size() > kPiece ? file.size() - kPiece : 0;
  for (uint64_t i = 0; i < kPieces; ++i) {
    RECMILL_ASSIGN_OR_RETURN(const size_t count, file.read(last * i / (kPieces - 1), piece));
    checksum = crc32c(std::span(piece).first(count), checksum);
    if (last == 0) break;
  }
  return fmt::format("{:08x}", checksum);
}

Result<Json> listed_files(const DataOptions& data, Files& files) {
  Json list = Json::array();
  if (data.format == DataFormat::synthetic) return list;
  RECMILL_ASSIGN_OR_RETURN(const auto paths, reader::data_files(data, Subset::train, files));
  for (const std::string& path : paths) {
    RECMILL_ASSIGN_OR_RETURN(const auto file, files.open(path));
    RECMILL_ASSIGN_OR_RETURN(const std::string checksum, sampled_checksum(*file));
    list.push_back({{"file", path.substr(path.rfind('/') + 1)},
                    {"bytes", file->size()},
                    {"checksum", checksum}});
  }
  return list;
}

/// What of [hotset] decides the set, and rows' bytes where they do.
Result<Json> decision_of(const ResolvedRun& run, Files& files) {
  const HotsetOptions& options = run.options.hotset;
  Json json;
  if (!options.plan.empty()) {
    auto set = read_hot_set(files, options.plan);
    if (!set.ok()) return set.status().at("hotset.plan");
    const HotSetFiles encoded = encode_hot_set(*set);
    json["plan"] = fmt::format("{:016x}", hash_bytes(encoded.text + encoded.rows));
    return json;
  }
  json["bytes"] = options.bytes;
  json["threshold"] = options.threshold;
  json["pick"] = name_of(options.pick);
  if (options.sample < 1) json["sample"] = options.sample;
  Json row_bytes = Json::array();
  for (const auto& table : hot_problem(run, 0).tables)
    row_bytes.push_back(table.always_hot ? 0 : table.row_bytes);
  json["row_bytes"] = std::move(row_bytes);
  return json;
}

std::string was_and_is(const std::string& what, const Json& then, const Json& now) {
  return fmt::format("{} was {} when it was written, and is {}", what, then.dump(), now.dump());
}

/// The first entry of two objects that is not the same.
std::string first_other_entry(const std::string& before, const Json& then, const Json& now) {
  if (!then.is_object()) return was_and_is(before, then, now);
  for (const auto& [key, value] : now.items())
    if (!then.contains(key) || then[key] != value)
      return was_and_is(before + key, then.contains(key) ? then[key] : Json(), value);
  for (const auto& [key, value] : then.items())
    if (!now.contains(key)) return was_and_is(before + key, value, Json());
  return "";
}

std::string data_difference(const Json& then, const Json& now) {
  const Json none = Json::array();
  const Json& files_then = then.is_object() && then.contains("files") ? then["files"] : none;
  const Json& files_now = now["files"];
  for (size_t i = 0; i < std::max(files_then.size(), files_now.size()); ++i) {
    const Json a = i < files_then.size() ? files_then[i] : Json(),
               b = i < files_now.size() ? files_now[i] : Json();
    if (a != b) return was_and_is("the data: file " + std::to_string(i), a, b);
  }
  return first_other_entry("the data: ", then, now);
}

Result<std::vector<std::vector<uint64_t>>> read_dictionaries(const std::string& path,
                                                             const Json& manifest, Files& files) {
  std::vector<std::vector<uint64_t>> lists;
  RECMILL_ASSIGN_OR_RETURN(const std::string bytes,
                           read_text(files, path + "/" + hot_files::kDictionaries));
  std::vector<int64_t> sizes;
  std::string checksum;
  KeyReader read{manifest, path + "/" + hot_files::kManifest, "", {}};
  read("dictionary_sizes", sizes);
  read("dictionaries_crc32c", checksum);
  RECMILL_RETURN_IF_ERROR(read.status);
  if (checksum != fmt::format("{:08x}", crc32c(std::as_bytes(std::span(bytes)))))
    return Status::Failed(path + "/" + hot_files::kDictionaries +
                          ": damaged: its checksum does not hold");
  size_t at = 0;
  for (const int64_t size : sizes) {
    const auto count = static_cast<size_t>(size) * sizeof(uint64_t);
    if (size < 0 || count > bytes.size() - at)
      return Status::Failed(path + "/" + hot_files::kDictionaries + ": is cut short");
    lists.emplace_back(static_cast<size_t>(size));
    if (count > 0) std::memcpy(lists.back().data(), bytes.data() + at, count);
    at += count;
  }
  return lists;
}

/// The rates of another run's schedules.
Status read_schedules(const std::string& path, Files& files, hotset::RatePolicy& policy) {
  constexpr const char* kReplay = "hotset.replay: ";
  if (!files.exists(path))
    return Status::BadRequest(kReplay + ("there is no file " + whole_path(path)));
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(files, path));
  int64_t number = 0;
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    ++number;
    const Json line = Json::parse(text.substr(begin, end - begin), nullptr, false);
    const bool whole = line.is_object() && line.contains("schedule") && line.contains("rate") &&
                       line["schedule"].is_number_integer() && line["rate"].is_number();
    const auto rate = whole ? hotset::Percent::of(line["rate"].get<double>()) : std::nullopt;
    if (!rate)
      return Status::BadRequest(
          fmt::format("{}{}:{}: has no schedule and rate", kReplay, path, number));
    policy.repeated[line["schedule"].get<int64_t>()] = *rate;
  }
  if (!policy.repeated.empty()) return {};
  return Status::BadRequest(fmt::format("{}{} has no schedule", kReplay, path));
}

Result<HotColdRules> rules_of(const HotsetOptions& options, Files& files) {
  HotColdRules rules;
  rules.policy.hot_first = options.first == FirstKind::hot;
  rules.judged_rows = options.eval_rows;
  rules.repeats_from = options.replay;
  if (options.rate > 0) rules.policy.fixed = hotset::Percent::of(options.rate);
  if (!options.replay.empty())
    RECMILL_RETURN_IF_ERROR(read_schedules(options.replay, files, rules.policy));
  return rules;
}

DataOptions data_of_folder(const HotFolder& folder, const DataOptions& of, const char* file) {
  DataOptions data;
  data.format = DataFormat::parquet;
  data.path = folder.path;
  data.train = {file};
  data.shuffle = of.shuffle;
  data.prefetch = of.prefetch;
  data.cache = of.cache;
  return data;
}

Result<HotFolder> read_hot_folder(const ResolvedRun& run, Files& files) {
  HotFolder folder;
  folder.path = run.options.hotset.folder;
  RECMILL_ASSIGN_OR_RETURN(const Json manifest, read_hot_manifest(folder.path, files));
  RECMILL_ASSIGN_OR_RETURN(const Json now, hot_folder_origin(run, files));
  RECMILL_RETURN_IF_ERROR(
      check_hot_folder_origin(folder.path, manifest.value("origin", Json::object()), now));
  RECMILL_RETURN_IF_ERROR(check_hot_files(folder.path, manifest, files));
  KeyReader read{manifest, folder.path + "/" + hot_files::kManifest, "", {}};
  read("cold_inputs", folder.cold_inputs);
  read("hot_inputs", folder.hot_inputs);
  RECMILL_RETURN_IF_ERROR(read.status);
  RECMILL_ASSIGN_OR_RETURN(folder.set, read_hot_set(files, folder.path + "/" + hot_files::kSet));
  RECMILL_RETURN_IF_ERROR(check_hot_set(folder.set, run.spec.tables));
  RECMILL_ASSIGN_OR_RETURN(folder.dictionaries, read_dictionaries(folder.path, manifest, files));
  if (folder.dictionaries.size() != preprocess::dictionary_lists(run.graph).size())
    return Status::Failed(folder.path + ": has the dictionaries of another model");
  return folder;
}

}  // namespace

Json order_of(const ResolvedRun& run) {
  const HotSetFiles set = encode_hot_set(run.hot_folder->set);
  return {{"hot_set", fmt::format("{:016x}", hash_bytes(set.text + set.rows))},
          {"first", name_of(run.options.hotset.first)}};
}

ResolvedRun in_order_of_data(ResolvedRun run) {
  run.options.data.shuffle.kind = ShuffleKind::none;
  return run;
}

Result<Json> hot_folder_origin(const ResolvedRun& run, Files& files) {
  const DataOptions& data = run.options.data;
  Json origin;
  RECMILL_ASSIGN_OR_RETURN(origin["data"]["files"], listed_files(data, files));
  origin["data"]["options"] = data_digest(data);
  // Drawn negatives are rows by the seed.
  if (data.format == DataFormat::behavior_log) origin["data"]["seed"] = run.options.train.seed;
  ResolvedRun of_model = run;  // whose digest may say how its data is read: that is above
  of_model.options.data = {};
  of_model.options.train.seed = 0;
  origin["model"] = row_digest(of_model);
  RECMILL_ASSIGN_OR_RETURN(origin["hotset"], decision_of(run, files));
  return origin;
}

Status check_hot_folder_origin(const std::string& path, const Json& then, const Json& now) {
  std::string what = data_difference(then.value("data", Json()), now["data"]);
  if (what.empty() && then.value("model", Json()) != now["model"])
    what = "the tables, or how ids become their rows, are not those that it was written for";
  if (what.empty())
    what = first_other_entry("hotset.", then.value("hotset", Json()), now["hotset"]);
  if (what.empty()) return {};
  return Status::BadRequest(fmt::format("{}: {}: {}; 'recmill convert --hotcold' writes another",
                                        kFolderKey, whole_path(path), what));
}

Result<Json> read_hot_manifest(const std::string& path, Files& files) {
  const std::string name = path + "/" + hot_files::kManifest;
  if (!files.exists(name))
    return Status::BadRequest(
        fmt::format("{}: there is no {}; 'recmill convert CONFIG --hotcold {}' writes it",
                    kFolderKey, whole_path(name), path));
  RECMILL_ASSIGN_OR_RETURN(Json manifest, read_json(files, name));
  KeyReader read{manifest, name, "", {}};
  read.version(kManifestVersion);
  RECMILL_RETURN_IF_ERROR(read.status);
  return manifest;
}

Status check_hot_files(const std::string& path, const Json& manifest, Files& files) {
  const Json sizes = manifest.value("files", Json::object());
  for (const char* name :
       {hot_files::kCold, hot_files::kHot, hot_files::kSet, hot_files::kDictionaries}) {
    const std::string file = path + "/" + name;
    const auto open = files.open(file);
    if (!open.ok()) return open.status().at(kFolderKey);
    if (sizes.value(name, Json()) == (*open)->size()) continue;
    return Status::BadRequest(
        fmt::format("{}: {} has {} bytes, and {} says {}: it is cut short, or "
                    "another's",
                    kFolderKey, whole_path(file), (*open)->size(), hot_files::kManifest,
                    sizes.value(name, Json()).dump()));
  }
  return {};
}

Status open_hot_folder(ResolvedRun& run, Files& files) {
  if (run.options.hotset.order == BatchOrder::mixed) return {};
  RECMILL_ASSIGN_OR_RETURN(HotFolder folder, read_hot_folder(run, files));
  RECMILL_ASSIGN_OR_RETURN(folder.rules, rules_of(run.options.hotset, files));
  run.hot_folder = std::make_shared<const HotFolder>(std::move(folder));
  return {};
}

Result<std::unique_ptr<HotColdRows>> open_hot_cold_rows(const ResolvedRun& run, ThreadPool& pool,
                                                        Files& files, bool with_numbers) {
  const HotFolder& folder = *run.hot_folder;
  const auto seed = static_cast<uint64_t>(run.options.train.seed);
  std::unique_ptr<reader::Reader> readers[2];
  for (const auto& [index, file] : {std::pair{0, hot_files::kCold}, {1, hot_files::kHot}}) {
    DataOptions data = data_of_folder(folder, run.options.data, file);
    data.scored.numbers = with_numbers;
    if (with_numbers) data.scored.key = hot_files::kInputField;
    RECMILL_ASSIGN_OR_RETURN(readers[index],
                             reader::open_reader(data, Subset::train, seed, pool, files));
    if (readers[index]->schema() == run.schema) continue;
    return Status::Failed(folder.path + "/" + file + ": has other columns than the data");
  }
  RECMILL_ASSIGN_OR_RETURN(auto rows,
                           HotColdRows::open(std::move(readers[0]), std::move(readers[1])));
  if (rows->rows(hotset::BatchKind::cold) == folder.cold_inputs &&
      rows->rows(hotset::BatchKind::hot) == folder.hot_inputs)
    return rows;
  return Status::Failed(folder.path + ": other numbers of rows than its manifest says");
}

Status fill_dictionaries(const HotFolder& folder, preprocess::Preprocessor& preprocessor) {
  for (size_t d = 0; d < folder.dictionaries.size(); ++d)
    RECMILL_RETURN_IF_ERROR(
        preprocessor.restore_dictionary(static_cast<int>(d), folder.dictionaries[d])
            .at(folder.path));
  return {};
}

}  // namespace recmill::train
