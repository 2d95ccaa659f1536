// SPDX-License-Identifier: Apache-2.0
#include "run/checkpoint/saved_state.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/json/json.h"
#include "base/memory_files.h"
#include "checkpoint/folder.h"
#include "run/checkpoint/checkpoint_entries.h"
#include "step/metrics/sample_window.h"

namespace recmill::train {
namespace {

using checkpoint::ElementType;
using checkpoint::PartWriter;

constexpr int64_t kIdsAtOnce = 65536;
constexpr const char* kFolder = "commit";  // in which the state is packed

Status add_layers(const model::Model& model, const SavedState& taken, PartWriter& part) {
  for (const model::ParameterSpec& parameter : model.parameters()) {
    const auto slice = [&](const std::vector<float>& flat) {
      return std::as_bytes(std::span(flat).subspan(parameter.offset, parameter.size()));
    };
    RECMILL_RETURN_IF_ERROR(
        part.add(layer_entry("dense/" + parameter.name, parameter), slice(taken.parameters)));
    for (const DenseOptimizer::State& state : taken.dense_state) {
      RECMILL_RETURN_IF_ERROR(
          part.add(layer_entry("dense_state/" + parameter.name + "/" + state.name, parameter),
                   slice(state.values)));
    }
  }
  return {};
}

// A version's entries are the first ones, which never change.
Status add_dictionaries(const ResolvedRun& run, const preprocess::Preprocessor& preprocessor,
                        const preprocess::DictionaryVersions& versions, PartWriter& part) {
  std::vector<uint64_t> ids;
  const auto lists = preprocess::dictionary_lists(run.graph);
  for (size_t d = 0; d < lists.size(); ++d) {
    const int64_t entries = versions.empty() ? 0 : versions[d];
    const checkpoint::EntrySpec entry{lists[d], ElementType::uint64, {entries}};
    RECMILL_RETURN_IF_ERROR(part.add(entry, {}));
    for (int64_t first = 0; first < entries; first += kIdsAtOnce) {
      ids.resize(std::min(kIdsAtOnce, entries - first));
      preprocessor.read_dictionary(static_cast<int>(d), first, ids);
      RECMILL_RETURN_IF_ERROR(part.add(entry, first, std::as_bytes(std::span(ids))));
    }
  }
  return {};
}

Status add_window(const metrics::WindowContents& window, PartWriter& part) {
  const auto add_column = [&]<typename T>(const char* name, ElementType type,
                                          const std::vector<T>& values) {
    return part.add({name, type, {static_cast<int64_t>(values.size())}},
                    std::as_bytes(std::span(values)));
  };
  std::vector<float> probabilities;  // for readers from before there were logits
  for (const double logit : window.logits)
    probabilities.push_back(static_cast<float>(metrics::probability_of(logit)));
  RECMILL_RETURN_IF_ERROR(add_column("metric/window/logit", ElementType::float64, window.logits));
  RECMILL_RETURN_IF_ERROR(
      add_column("metric/window/probability", ElementType::float32, probabilities));
  RECMILL_RETURN_IF_ERROR(add_column("metric/window/label", ElementType::float32, window.labels));
  RECMILL_RETURN_IF_ERROR(add_column("metric/window/weight", ElementType::float32, window.weights));
  return add_column("metric/window/group", ElementType::uint64, window.groups);
}

}  // namespace

SavedState take_state(Rank& rank, LoopState loop) {
  const std::span<const float> parameters = rank.trainer->parameters();
  return {{parameters.begin(), parameters.end()}, rank.dense_optimizer->state(), std::move(loop)};
}

Status add_state(const ResolvedRun& run, const Rank& rank, const SavedState& state,
                 PartWriter& part) {
  RECMILL_RETURN_IF_ERROR(add_layers(*rank.model, state, part));
  RECMILL_RETURN_IF_ERROR(add_window(state.loop.window, part));
  return add_dictionaries(run, *rank.preprocessor, state.loop.dictionaries, part);
}

Result<std::vector<std::byte>> pack_state(const ResolvedRun& run, const Rank& rank,
                                          const SavedState& state) {
  MemoryFiles files;
  RECMILL_ASSIGN_OR_RETURN(
      auto writer, checkpoint::Writer::create(files, kFolder, state.loop.position.iteration));
  RECMILL_ASSIGN_OR_RETURN(auto part, PartWriter::create(files, writer->path(), 0));
  RECMILL_RETURN_IF_ERROR(add_state(run, rank, state, *part));
  RECMILL_ASSIGN_OR_RETURN(auto contents, part->finish());
  RECMILL_RETURN_IF_ERROR(writer->finish({std::move(contents)}, properties_of(run, state.loop)));
  return files.pack();
}

Result<PackedState> PackedState::open(std::span<const std::byte> bytes, const std::string& whose) {
  PackedState state;
  auto files = MemoryFiles::unpack(bytes);
  if (!files.ok()) return files.status().at(whose);
  state.files = *std::move(files);
  auto newest = checkpoint::open_newest(*state.files, kFolder);
  if (!newest.ok()) return newest.status().at(whose);
  for (const std::string& damaged : newest->damaged) return Status::Failed(damaged).at(whose);
  if (newest->reader == nullptr) return Status::Failed("there is nothing in it").at(whose);
  state.reader = std::move(newest->reader);
  return state;
}

}  // namespace recmill::train
