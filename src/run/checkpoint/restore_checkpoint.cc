// SPDX-License-Identifier: Apache-2.0
#include "run/checkpoint/restore_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "base/log.h"
#include "run/checkpoint/checkpoint_entries.h"
#include "run/checkpoint/trained_meaning.h"
#include "step/data/reader_source.h"
#include "table/embedding_table.h"

namespace recmill::train {
namespace {

using checkpoint::ElementType;

constexpr int64_t kRowsOfBlock = 65536;

// The key of the configuration that says `key` of a table's optimizer, which an entry of [[tables]]
// may give as `field`.
template <typename T>
std::string optimizer_key(const RunOptions& options, const std::string& table, const char* key,
                          std::optional<T> preprocess::TableOptions::*field, const char* of_table) {
  for (size_t i = 0; i < options.tables.size(); ++i) {
    if (options.tables[i].name == table && options.tables[i].*field)
      return fmt::format("tables[{}].{}", i, of_table);
  }
  return fmt::format("embedding.optimizer.{}", key);
}

/// What the checkpoint says otherwise; `is` has the key in front.
Status differs(const std::string& is, const std::string& path, const Json& then) {
  return Status::BadRequest(fmt::format("{}, and {} was written with {}", is, path,
                                        then.is_null() ? "none" : then.dump()));
}

Status check_optimizers(const ResolvedRun& run, const Json& then, const Json& now,
                        const std::string& path) {
  // `absent`: what it means when a checkpoint does not say it.
  const auto check = [&](const std::string& key, const Json::json_pointer& place,
                         const std::string& whose, const Json& absent = {}) -> Status {
    const Json was = then.contains(place) ? then[place] : absent;
    const Json is = now.contains(place) ? now[place] : absent;
    if (was == is) return {};
    return differs(fmt::format("{}: is {}{}", key, is.dump(), whose), path, was);
  };
  RECMILL_RETURN_IF_ERROR(check("optimizer.kind", Json::json_pointer("/dense"), ""));
  for (const TableSpec& table : run.spec.tables) {
    using preprocess::TableOptions;
    const std::string whose = " (table '" + table.name + "')";
    RECMILL_RETURN_IF_ERROR(
        check(optimizer_key(run.options, table.name, "kind", &TableOptions::optimizer, "optimizer"),
              Json::json_pointer("/tables") / table.name, whose));
    RECMILL_RETURN_IF_ERROR(check(optimizer_key(run.options, table.name, "correction",
                                                &TableOptions::correction, "correction"),
                                  Json::json_pointer("/corrections") / table.name, whose,
                                  "global"));
  }
  return {};
}

/// Of the columns whose names `now` lists, in the checkpoint `then`: the key of the first other
/// one.
std::string column_key(const DataOptions& data, const Json& now, const Json& then) {
  for (size_t i = 0; i < now.size(); ++i) {
    if (then.is_array() && i < then.size() && then[i] == now[i]) continue;
    const auto spec = std::ranges::find(data.columns, now[i].get<std::string>(), &ColumnSpec::name);
    if (spec == data.columns.end()) break;
    return fmt::format("data.columns[{}]", spec - data.columns.begin());
  }
  return data.columns.empty() ? "data.format" : "data.columns";
}

Status check_schema(const ResolvedRun& run, const Json& then, const std::string& path) {
  const std::pair<const char*, const std::vector<std::string>&> roles[] = {
      {"dense", run.schema.dense}, {"ids", run.schema.ids}};
  for (const auto& [role, names] : roles) {
    const Json now = names, before = then.is_object() ? then.value(role, Json()) : Json();
    if (before == now) continue;
    return differs(
        fmt::format("{}: the {} columns are {}", column_key(run.options.data, now, before),
                    role == roles[0].first ? "dense" : "id", now.dump()),
        path, before);
  }
  return {};
}

// Reads what the rank owns where that is a range of rows or columns; where rows are split by hash,
// all of them, since its own are scattered through every block.
Status restore_table(const ResolvedRun& run, Rank& rank, checkpoint::Reader& reader, int number,
                     bool with_state) {
  const TableSpec& table = run.spec.tables[number];
  RECMILL_ASSIGN_OR_RETURN(const auto* weights, reader.expect(weight_entry(table)));
  const auto [rows, columns] = rank.store->extent(number);
  std::vector<const checkpoint::Entry*> states;
  for (const table::StateColumn& column :
       with_state ? table::row_state(table) : table::RowState{}) {
    RECMILL_ASSIGN_OR_RETURN(const auto* entry, reader.expect(state_entry(table, column)));
    states.push_back(entry);
  }
  std::vector<float> values;
  std::vector<uint16_t> bits;
  std::vector<std::vector<float>> state(states.size());
  for (int64_t first = rows.begin; first < rows.end; first += kRowsOfBlock) {
    const int64_t count = std::min(kRowsOfBlock, rows.end - first);
    values.resize(count * columns.count);
    if (table.precision == RowPrecision::float32) {
      RECMILL_RETURN_IF_ERROR(
          reader.read(*weights, first, count, columns, std::as_writable_bytes(std::span(values))));
    } else {
      bits.resize(values.size());
      RECMILL_RETURN_IF_ERROR(
          reader.read(*weights, first, count, columns, std::as_writable_bytes(std::span(bits))));
      widen(bits, table.precision, values);
    }
    std::vector<std::span<const float>> views;
    for (size_t c = 0; c < states.size(); ++c) {
      const bool by_row = states[c]->spec.row_elements() < table.dim;
      const ColumnRange of_state = by_row ? ColumnRange{0, 1} : columns;
      state[c].resize(count * of_state.count);
      RECMILL_RETURN_IF_ERROR(reader.read(*states[c], first, count, of_state,
                                          std::as_writable_bytes(std::span(state[c]))));
      views.push_back(state[c]);
    }
    RECMILL_RETURN_IF_ERROR(
        rank.store->write_rows({number, first, count, values, views, {}, columns}));
  }
  return {};
}

Status restore_layers(Rank& rank, checkpoint::Reader& reader, bool with_state) {
  for (const model::ParameterSpec& parameter : rank.model->parameters()) {
    const auto restore = [&](const std::string& name, std::span<float> flat) -> Status {
      RECMILL_ASSIGN_OR_RETURN(const auto* entry, reader.expect(layer_entry(name, parameter)));
      return reader.read(*entry, 0, entry->spec.rows(),
                         std::as_writable_bytes(flat.subspan(parameter.offset, parameter.size())));
    };
    RECMILL_RETURN_IF_ERROR(restore("dense/" + parameter.name, rank.trainer->parameters()));
    if (!with_state) continue;
    for (DenseOptimizer::State& state : rank.dense_optimizer->state()) {
      RECMILL_RETURN_IF_ERROR(
          restore("dense_state/" + parameter.name + "/" + state.name, state.values));
    }
  }
  return rank.trainer->load_parameters();
}

// A whole entry of one extent, whatever its length.
template <typename T>
Result<std::vector<T>> read_column(checkpoint::Reader& reader, const std::string& name,
                                   ElementType type) {
  const checkpoint::Entry* entry = reader.find(name);
  if (entry == nullptr) return Status::Failed(reader.path() + ": has no '" + name + "'");
  if (entry->spec.type != type || entry->spec.shape.size() != 1) {
    return Status::Failed(reader.path() + ": '" + name + "' is " + entry->spec.text());
  }
  return reader.read_all<T>(*entry);
}

// Checkpoints of before have the probabilities alone.
Result<std::vector<double>> window_logits(checkpoint::Reader& reader) {
  constexpr const char* kLogit = "metric/window/logit";
  if (reader.find(kLogit) != nullptr)
    return read_column<double>(reader, kLogit, ElementType::float64);
  RECMILL_ASSIGN_OR_RETURN(
      const auto probabilities,
      read_column<float>(reader, "metric/window/probability", ElementType::float32));
  std::vector<double> logits(probabilities.size());
  std::ranges::transform(probabilities, logits.begin(), metrics::logit_of);
  return logits;
}

Status restore_dictionaries(const ResolvedRun& run, Rank& rank, checkpoint::Reader& reader,
                            LoopState& state) {
  const auto lists = preprocess::dictionary_lists(run.graph);
  for (size_t d = 0; d < lists.size(); ++d) {
    RECMILL_ASSIGN_OR_RETURN(const auto ids,
                             read_column<uint64_t>(reader, lists[d], ElementType::uint64));
    RECMILL_RETURN_IF_ERROR(
        rank.preprocessor->restore_dictionary(static_cast<int>(d), ids).at(reader.path()));
    state.dictionaries.push_back(static_cast<int64_t>(ids.size()));
  }
  return {};
}

// A checksum says that a manifest is as it was written, not that we wrote it.
Status read_state(const Json& properties, LoopState& state) {
  RECMILL_ASSIGN_OR_RETURN(state.position, read_position(properties));
  RECMILL_RETURN_IF_ERROR(read_count(properties, "window/total", state.window.total));
  RECMILL_RETURN_IF_ERROR(read_count(properties, "early_stop/counted", state.early_stop.counted));
  RECMILL_RETURN_IF_ERROR(
      read_count(properties, "early_stop/without_gain", state.early_stop.without_gain));
  if (properties.contains("schedule")) {
    RECMILL_ASSIGN_OR_RETURN(state.schedule, schedule_progress_from(properties["schedule"]));
  }
  const Json::json_pointer gained("/early_stop/best");
  if (properties.contains(gained)) {
    if (!properties[gained].is_number())
      return Status::Failed("property early_stop/best is no number");
    state.early_stop.best = properties[gained].get<double>();
  }
  if (!properties.contains("best")) return {};
  const Json& best = properties["best"];
  if (!best.is_object() || !best.contains("iteration") || !best.contains("value") ||
      !best["iteration"].is_number_unsigned() || !best["value"].is_number())
    return Status::Failed("property best is no iteration and value");
  state.best = {best["value"].get<double>(), best["iteration"].get<int64_t>()};
  return {};
}

// Values of another metric are not to be compared with.
void begin_anew_with_another_metric(const Json& properties, StopMetric metric, LoopState& state) {
  const Json::json_pointer at("/early_stop/metric");
  if (!properties.contains(at) || properties[at] == name_of(metric)) return;
  state.early_stop = {};
  state.best.reset();
}

/// How the run's folder of a checkpoint calls its configuration; empty: it is in no run's.
std::string config_beside(const std::string& path, Files& files) {
  const std::filesystem::path checkpoints =
      std::filesystem::path(path).lexically_normal().parent_path();
  if (checkpoints.filename() != "checkpoints") return "";
  const std::string config = (checkpoints.parent_path() / "config.toml").string();
  return files.exists(config) ? config : "";
}

}  // namespace

Status check_origin(const ResolvedRun& run, const checkpoint::Reader& reader, bool for_training) {
  const Json expected = properties_of(run, {}), &properties = reader.properties();
  const std::string& path = reader.path();
  const auto of = [&](const char* key) {
    return properties.is_object() ? properties.value(key, Json()) : Json();
  };
  RECMILL_RETURN_IF_ERROR(check_schema(run, of("schema"), path));
  RECMILL_RETURN_IF_ERROR(compare_meaning(run, of("meaning"), path));
  RECMILL_RETURN_IF_ERROR(compare_graph(run, of("graph"), path));
  if (!for_training) return {};
  // Checkpoints call slices shards.
  for (const auto& [key, property] :
       {std::pair{"slices", "shards"}, {"batch_size", "batch_size"}, {"seed", "seed"}}) {
    if (of(property) == expected[property]) continue;
    return differs(fmt::format("train.{}: is {}", key, expected[property].dump()), path,
                   of(property));
  }
  const Json then = of("order"), now = expected.value("order", Json());
  if (then != now) {
    const bool same_kind = then.is_null() == now.is_null();
    return differs(same_kind
                       ? fmt::format("hotset.folder: is {}", now.dump())
                       : fmt::format("hotset.order: is {}", now.is_null() ? "mixed" : "hot_cold"),
                   path, same_kind || !now.is_null() ? then : Json("hot_cold"));
  }
  return check_optimizers(run, of("optimizers"), expected["optimizers"], path);
}

Status check_untold_origin(const ResolvedRun& run, const checkpoint::Reader& reader,
                           const ReadOptions& read_options, Files& files) {
  const Json& properties = reader.properties();
  if (properties.is_object() && tells_all(run, properties.value("meaning", Json()))) return {};
  const std::string config = config_beside(reader.path(), files);
  const std::string untold = reader.path() +
                             ": was written before checkpoints said how cells are read, bags "
                             "pooled and models made, and ";
  const std::string skipped = ": these are not compared with this configuration";
  if (config.empty() || read_options == nullptr) {
    log_info(untold + "no config.toml of its run is beside it" + skipped);
    return {};
  }
  const auto resolve_then = [&]() -> Result<ResolvedRun> {
    RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(files, config));
    RECMILL_ASSIGN_OR_RETURN(RunOptions options, read_options(text, config));
    options.train.ranks = 1;
    return resolve_run(options, run.schema, run.threads);
  };
  const auto then = resolve_then();
  if (then.ok())
    return compare_meaning(run, meaning_of(*then),
                           reader.path() + ", as its run's config.toml says,");
  log_info(untold + "its run's cannot be taken (" + then.status().message() + ")" + skipped);
  return {};
}

Result<metrics::WindowContents> read_window(checkpoint::Reader& reader) {
  metrics::WindowContents window;
  const auto floats = [&](const char* name, std::vector<float>& values) -> Status {
    RECMILL_ASSIGN_OR_RETURN(values, read_column<float>(reader, name, ElementType::float32));
    return {};
  };
  RECMILL_ASSIGN_OR_RETURN(window.logits, window_logits(reader));
  RECMILL_RETURN_IF_ERROR(floats("metric/window/label", window.labels));
  RECMILL_RETURN_IF_ERROR(floats("metric/window/weight", window.weights));
  RECMILL_ASSIGN_OR_RETURN(
      window.groups, read_column<uint64_t>(reader, "metric/window/group", ElementType::uint64));
  const size_t samples = window.logits.size();
  const auto fits = [&](size_t size) { return size == 0 || size == samples; };
  if (window.labels.size() == samples && fits(window.weights.size()) && fits(window.groups.size()))
    return window;
  return Status::Failed(reader.path() + ": the columns of metric/window differ in length");
}

Result<LoopState> restore_checkpoint(const ResolvedRun& run, Rank& rank, checkpoint::Reader& reader,
                                     bool for_training) {
  RECMILL_RETURN_IF_ERROR(check_origin(run, reader, for_training));
  for (size_t t = 0; t < run.spec.tables.size(); ++t) {
    RECMILL_RETURN_IF_ERROR(restore_table(run, rank, reader, static_cast<int>(t), for_training));
  }
  return restore_state(run, rank, reader, for_training);
}

Result<LoopState> restore_state(const ResolvedRun& run, Rank& rank, checkpoint::Reader& reader,
                                bool for_training) {
  RECMILL_RETURN_IF_ERROR(restore_layers(rank, reader, for_training));
  LoopState state;
  RECMILL_RETURN_IF_ERROR(read_state(reader.properties(), state).at(reader.path()));
  begin_anew_with_another_metric(reader.properties(), run.options.train.early_stop.metric, state);
  if (for_training) {
    RECMILL_RETURN_IF_ERROR(check_position(state.position, *rank.train_rows).at(reader.path()));
    const int64_t total = state.window.total;
    RECMILL_ASSIGN_OR_RETURN(state.window, read_window(reader));
    state.window.total = total;
  }
  RECMILL_RETURN_IF_ERROR(restore_dictionaries(run, rank, reader, state));
  return state;
}

}  // namespace recmill::train
