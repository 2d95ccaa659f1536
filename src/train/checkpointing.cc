// SPDX-License-Identifier: Apache-2.0
#include "train/checkpointing.h"

#include <fmt/format.h>

#include <functional>

#include "base/bfloat16.h"
#include "checkpoint/folder.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "table/embedding_table.h"

namespace recmill::train {
namespace {

using checkpoint::ElementType;
using checkpoint::EntrySpec;

constexpr int64_t kRowsAtOnce = 65536;
// Copies that may wait to be written; more, and training waits for the disk.
constexpr int64_t kWaitingBytes = int64_t{512} << 20;

ElementType type_of(RowPrecision precision) {
  switch (precision) {
    case RowPrecision::float32:
      return ElementType::float32;
    case RowPrecision::bfloat16:
      return ElementType::bfloat16;
    case RowPrecision::float16:
      return ElementType::float16;
  }
  return ElementType::float32;
}

EntrySpec weight_entry(const TableSpec& table) {
  return {"table/" + table.name + "/weight", type_of(table.precision), {table.rows, table.dim}};
}

EntrySpec state_entry(const TableSpec& table, const table::StateColumn& column) {
  return {"table/" + table.name + "/state/" + column.name,
          ElementType::float32,
          {table.rows, column.width}};
}

EntrySpec layer_entry(const std::string& name, const model::ParameterSpec& parameter) {
  return {name, ElementType::float32, parameter.shape};
}

template <typename T>
std::span<const std::byte> bytes_of(std::span<const T> values) {
  return std::as_bytes(values);
}

// Float32 values that came from 16-bit ones, exactly, back as their bits.
std::vector<uint16_t> narrow(std::span<const float> values, RowPrecision precision) {
  std::vector<uint16_t> bits(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    bits[i] = precision == RowPrecision::bfloat16 ? to_bfloat16(values[i]).bits
                                                  : to_float16(values[i]).bits;
  }
  return bits;
}

void widen(std::span<const uint16_t> bits, RowPrecision precision, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = precision == RowPrecision::bfloat16 ? to_float(BFloat16{bits[i]})
                                                    : to_float(Float16{bits[i]});
  }
}

// ---- saving

/// Takes rows of an entry for one part of the checkpoint.
using EntrySink = std::function<Status(const EntrySpec& entry, int64_t first_row,
                                       std::span<const std::byte> bytes)>;

Status add_rows(const ModelSpec& spec, const store::RowBlock& block, const EntrySink& add) {
  const TableSpec& table = spec.tables[block.table];
  if (table.precision == RowPrecision::float32) {
    RECMILL_RETURN_IF_ERROR(add(weight_entry(table), block.first, std::as_bytes(block.weights)));
  } else {
    const auto bits = narrow(block.weights, table.precision);
    RECMILL_RETURN_IF_ERROR(add(weight_entry(table), block.first, std::as_bytes(std::span(bits))));
  }
  const table::RowState columns = table::row_state(table);
  for (size_t c = 0; c < columns.size(); ++c) {
    RECMILL_RETURN_IF_ERROR(
        add(state_entry(table, columns[c]), block.first, std::as_bytes(block.state[c])));
  }
  return {};
}

Status add_layers(Rank& rank, const EntrySink& add) {
  for (const model::ParameterSpec& parameter : rank.model->parameters()) {
    const auto slice = [&](const std::vector<float>& flat) {
      return std::as_bytes(std::span(flat).subspan(parameter.offset, parameter.size()));
    };
    RECMILL_RETURN_IF_ERROR(add(layer_entry("dense/" + parameter.name, parameter), 0,
                                slice(rank.trainer->parameters())));
    for (const DenseOptimizer::State& state : rank.dense_optimizer->state()) {
      RECMILL_RETURN_IF_ERROR(
          add(layer_entry("dense_state/" + parameter.name + "/" + state.name, parameter), 0,
              slice(state.values)));
    }
  }
  return {};
}

Status add_dictionaries(const ResolvedRun& run, const Rank& rank,
                        const preprocess::DictionaryVersions& versions, const EntrySink& add) {
  for (size_t d = 0; d < run.graph.dictionaries.size(); ++d) {
    const int64_t entries = versions.empty() ? 0 : versions[d];
    std::vector<uint64_t> ids(entries);
    rank.preprocessor->read_dictionary(static_cast<int>(d), 0, ids);
    RECMILL_RETURN_IF_ERROR(
        add({"dictionary/" + run.graph.dictionaries[d].name, ElementType::uint64, {entries}}, 0,
            std::as_bytes(std::span(ids))));
  }
  return {};
}

Status add_window(const metrics::WindowContents& window, const EntrySink& add) {
  const auto add_column = [&]<typename T>(const char* name, ElementType type,
                                          const std::vector<T>& values) {
    return add({name, type, {static_cast<int64_t>(values.size())}}, 0,
               std::as_bytes(std::span(values)));
  };
  RECMILL_RETURN_IF_ERROR(
      add_column("metric/window/probability", ElementType::float32, window.probabilities));
  RECMILL_RETURN_IF_ERROR(add_column("metric/window/label", ElementType::float32, window.labels));
  RECMILL_RETURN_IF_ERROR(add_column("metric/window/weight", ElementType::float32, window.weights));
  return add_column("metric/window/group", ElementType::uint64, window.groups);
}

Json properties_of(const ResolvedRun& run, const LoopState& state) {
  Json properties;
  properties["iteration"] = state.position.iteration;
  properties["seed"] = run.options.train.seed;
  properties["shards"] = run.shards;
  properties["batch_size"] = run.options.train.batch_size;
  properties["schema"] = {{"dense", run.schema.dense}, {"ids", run.schema.ids}};
  properties["graph"] = preprocess::to_json(run.graph);
  properties["reader"] = {{"epoch", state.position.epoch}, {"row", state.position.row}};
  properties["window"] = {{"total", state.window.total}};
  Json early_stop;
  early_stop["counted"] = state.early_stop.counted;
  early_stop["without_gain"] = state.early_stop.without_gain;
  if (state.early_stop.best) early_stop["best"] = *state.early_stop.best;
  properties["early_stop"] = early_stop;
  return properties;
}

Status add_everything(const ResolvedRun& run, Rank& rank, bool first_rank, const LoopState& state,
                      const EntrySink& add) {
  RECMILL_RETURN_IF_ERROR(rank.store->settle());
  RECMILL_RETURN_IF_ERROR(rank.store->read_rows(
      [&](const store::RowBlock& block) { return add_rows(run.spec, block, add); }));
  if (!first_rank) return {};
  RECMILL_RETURN_IF_ERROR(add_layers(rank, add));
  RECMILL_RETURN_IF_ERROR(add_window(state.window, add));
  return add_dictionaries(run, rank, state.dictionaries, add);
}

Result<checkpoint::PartContents> write_part(const ResolvedRun& run, Rank& rank, int number,
                                            Files& files, const std::string& path,
                                            const LoopState& state) {
  RECMILL_ASSIGN_OR_RETURN(auto part, checkpoint::PartWriter::create(files, path, number));
  RECMILL_RETURN_IF_ERROR(
      add_everything(run, rank, number == 0, state,
                     [&](const EntrySpec& entry, int64_t first, std::span<const std::byte> bytes) {
                       return part->add(entry, first, bytes);
                     }));
  return part->finish();
}

// Every rank learns whether all of them are well, so that none waits for one that is not.
Result<std::vector<std::string>> gather_texts(Communicator& communicator, const Status& status,
                                              const std::string& text) {
  const std::string sent = status.ok() ? "+" + text : "-" + status.message();
  RECMILL_ASSIGN_OR_RETURN(const Received received,
                           communicator.all_gather(std::as_bytes(std::span(sent))));
  std::vector<std::string> texts;
  for (int rank = 0; rank < communicator.ranks(); ++rank) {
    const auto bytes = received.from(rank);
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (texts.back()[0] == '-') return Status::Failed(texts.back().substr(1));
    texts.back().erase(0, 1);
  }
  return texts;
}

// ---- restoring

Status check_properties(const ResolvedRun& run, const Json& properties, bool for_training,
                        const std::string& path) {
  const Json expected = properties_of(run, {});
  for (const char* key : {"schema", "graph", "shards", "batch_size", "seed"}) {
    const bool of_the_run = std::string_view(key) != "schema" && std::string_view(key) != "graph";
    if (of_the_run && !for_training) continue;
    if (!properties.contains(key) || properties[key] != expected[key]) {
      return Status::BadRequest(path + ": was written by a run with another " + key +
                                " than this configuration's");
    }
  }
  return {};
}

Status restore_table(const ResolvedRun& run, Rank& rank, checkpoint::Reader& reader, int number,
                     bool with_state) {
  const TableSpec& table = run.spec.tables[number];
  RECMILL_ASSIGN_OR_RETURN(const auto* weights, reader.expect(weight_entry(table)));
  const table::RowState columns = with_state ? table::row_state(table) : table::RowState{};
  std::vector<const checkpoint::Entry*> states;
  for (const table::StateColumn& column : columns) {
    RECMILL_ASSIGN_OR_RETURN(const auto* entry, reader.expect(state_entry(table, column)));
    states.push_back(entry);
  }
  std::vector<float> values;
  std::vector<uint16_t> bits;
  std::vector<std::vector<float>> state(columns.size());
  for (int64_t first = 0; first < table.rows; first += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, table.rows - first);
    values.resize(count * table.dim);
    if (table.precision == RowPrecision::float32) {
      RECMILL_RETURN_IF_ERROR(
          reader.read(*weights, first, count, std::as_writable_bytes(std::span(values))));
    } else {
      bits.resize(values.size());
      RECMILL_RETURN_IF_ERROR(
          reader.read(*weights, first, count, std::as_writable_bytes(std::span(bits))));
      widen(bits, table.precision, values);
    }
    std::vector<std::span<const float>> views;
    for (size_t c = 0; c < columns.size(); ++c) {
      state[c].resize(count * columns[c].width);
      RECMILL_RETURN_IF_ERROR(
          reader.read(*states[c], first, count, std::as_writable_bytes(std::span(state[c]))));
      views.push_back(state[c]);
    }
    RECMILL_RETURN_IF_ERROR(rank.store->write_rows({number, first, count, values, views}));
  }
  return {};
}

Status restore_layers(Rank& rank, checkpoint::Reader& reader, bool with_state) {
  for (const model::ParameterSpec& parameter : rank.model->parameters()) {
    const auto restore = [&](const std::string& name, std::vector<float>& flat) -> Status {
      RECMILL_ASSIGN_OR_RETURN(const auto* entry, reader.expect(layer_entry(name, parameter)));
      return reader.read(
          *entry, 0, entry->spec.rows(),
          std::as_writable_bytes(std::span(flat).subspan(parameter.offset, parameter.size())));
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

Status restore_window(checkpoint::Reader& reader, metrics::WindowContents& window) {
  const auto floats = [&](const char* name, std::vector<float>& values) -> Status {
    RECMILL_ASSIGN_OR_RETURN(values, read_column<float>(reader, name, ElementType::float32));
    return {};
  };
  RECMILL_RETURN_IF_ERROR(floats("metric/window/probability", window.probabilities));
  RECMILL_RETURN_IF_ERROR(floats("metric/window/label", window.labels));
  RECMILL_RETURN_IF_ERROR(floats("metric/window/weight", window.weights));
  RECMILL_ASSIGN_OR_RETURN(
      window.groups, read_column<uint64_t>(reader, "metric/window/group", ElementType::uint64));
  const size_t samples = window.probabilities.size();
  const auto fits = [&](size_t size) { return size == 0 || size == samples; };
  if (window.labels.size() == samples && fits(window.weights.size()) && fits(window.groups.size()))
    return {};
  return Status::Failed(reader.path() + ": the columns of metric/window differ in length");
}

Status restore_dictionaries(const ResolvedRun& run, Rank& rank, checkpoint::Reader& reader,
                            LoopState& state) {
  for (size_t d = 0; d < run.graph.dictionaries.size(); ++d) {
    const std::string name = "dictionary/" + run.graph.dictionaries[d].name;
    RECMILL_ASSIGN_OR_RETURN(const auto ids,
                             read_column<uint64_t>(reader, name, ElementType::uint64));
    RECMILL_RETURN_IF_ERROR(rank.preprocessor->restore_dictionary(static_cast<int>(d), ids));
    state.dictionaries.push_back(static_cast<int64_t>(ids.size()));
  }
  return {};
}

// A checksum says that a manifest is as it was written, not that we wrote it.
Status read_state(const Json& properties, LoopState& state) {
  const std::pair<const char*, int64_t*> numbers[] = {
      {"/iteration", &state.position.iteration},
      {"/reader/epoch", &state.position.epoch},
      {"/reader/row", &state.position.row},
      {"/window/total", &state.window.total},
      {"/early_stop/counted", &state.early_stop.counted},
      {"/early_stop/without_gain", &state.early_stop.without_gain}};
  for (const auto& [name, value] : numbers) {
    const Json::json_pointer at(name);
    if (!properties.contains(at) || !properties[at].is_number_integer() ||
        properties[at].get<int64_t>() < 0) {
      return Status::Failed(fmt::format("property {} is no count", name + 1));
    }
    *value = properties[at].get<int64_t>();
  }
  const Json::json_pointer best("/early_stop/best");
  if (!properties.contains(best)) return {};
  if (!properties[best].is_number()) return Status::Failed("property early_stop/best is no number");
  state.early_stop.best = properties[best].get<double>();
  return {};
}

}  // namespace

CheckpointSaver::CheckpointSaver(const ResolvedRun& run, Rank& rank, Communicator& communicator,
                                 Files& files, std::string folder)
    : run_(run),
      rank_(rank),
      communicator_(communicator),
      files_(files),
      folder_(std::move(folder)),
      background_(kWaitingBytes) {}

Status CheckpointSaver::save(const LoopState& state) {
  return communicator_.ranks() == 1 ? save_behind(state) : save_together(state);
}

Status CheckpointSaver::publish(checkpoint::Writer& writer,
                                std::vector<checkpoint::PartContents> parts,
                                const Json& properties) const {
  RECMILL_RETURN_IF_ERROR(writer.finish(std::move(parts), properties));
  const int64_t keep = std::max<int64_t>(run_.options.train.checkpoint.keep, 1);
  return checkpoint::keep_last(files_, folder_, keep);
}

// Copies what is saved and hands it to the background; one checkpoint at a time.
Status CheckpointSaver::save_behind(const LoopState& state) {
  RECMILL_RETURN_IF_ERROR(background_.wait());
  RECMILL_ASSIGN_OR_RETURN(std::shared_ptr<checkpoint::Writer> writer,
                           checkpoint::Writer::create(files_, folder_, state.position.iteration));
  RECMILL_ASSIGN_OR_RETURN(std::shared_ptr<checkpoint::PartWriter> part,
                           checkpoint::PartWriter::create(files_, writer->path(), 0));
  RECMILL_RETURN_IF_ERROR(add_everything(
      run_, rank_, /*first_rank=*/true, state,
      [&](const EntrySpec& entry, int64_t first, std::span<const std::byte> bytes) {
        return background_.submit(
            static_cast<int64_t>(bytes.size()),
            [part, entry, first, copy = std::vector<std::byte>(bytes.begin(), bytes.end())] {
              return part->add(entry, first, copy);
            });
      }));
  const Json properties = properties_of(run_, state);
  return background_.submit(0, [this, writer, part, properties]() -> Status {
    RECMILL_ASSIGN_OR_RETURN(auto contents, part->finish());
    std::vector<checkpoint::PartContents> parts;
    parts.push_back(std::move(contents));
    return publish(*writer, std::move(parts), properties);
  });
}

Status CheckpointSaver::save_together(const LoopState& state) {
  std::unique_ptr<checkpoint::Writer> writer;
  Status begun;
  if (communicator_.rank() == 0) {
    auto created = checkpoint::Writer::create(files_, folder_, state.position.iteration);
    begun = created.status();
    if (created.ok()) writer = *std::move(created);
  }
  RECMILL_ASSIGN_OR_RETURN(const auto paths,
                           gather_texts(communicator_, begun, writer ? writer->path() : ""));
  const auto contents = write_part(run_, rank_, communicator_.rank(), files_, paths[0], state);
  RECMILL_ASSIGN_OR_RETURN(const auto texts,
                           gather_texts(communicator_, contents.status(),
                                        contents.ok() ? checkpoint::encode(*contents) : ""));
  Status published;
  if (writer) {
    std::vector<checkpoint::PartContents> parts;
    for (const std::string& text : texts) {
      RECMILL_ASSIGN_OR_RETURN(auto part, checkpoint::decode_part(text));
      parts.push_back(std::move(part));
    }
    published = publish(*writer, std::move(parts), properties_of(run_, state));
  }
  return gather_texts(communicator_, published, "").status();
}

Result<LoopState> restore_checkpoint(const ResolvedRun& run, Rank& rank, checkpoint::Reader& reader,
                                     bool for_training) {
  RECMILL_RETURN_IF_ERROR(check_properties(run, reader.properties(), for_training, reader.path()));
  for (size_t t = 0; t < run.spec.tables.size(); ++t) {
    RECMILL_RETURN_IF_ERROR(restore_table(run, rank, reader, static_cast<int>(t), for_training));
  }
  RECMILL_RETURN_IF_ERROR(restore_layers(rank, reader, for_training));
  LoopState state;
  RECMILL_RETURN_IF_ERROR(read_state(reader.properties(), state).at(reader.path()));
  if (for_training) RECMILL_RETURN_IF_ERROR(restore_window(reader, state.window));
  RECMILL_RETURN_IF_ERROR(restore_dictionaries(run, rank, reader, state));
  return state;
}

}  // namespace recmill::train
