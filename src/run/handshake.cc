// SPDX-License-Identifier: Apache-2.0
#include "run/handshake.h"

#include <fmt/format.h>

#include <sstream>

#include "model/make_model.h"
#include "model/torch_library.h"
#include "reader/data_files.h"
#include "run/gpu/gpu_run.h"

namespace recmill::train {
namespace {

constexpr int kMostNamed = 4;  // ranks in one line

std::string text_of(const DataSchema& schema) {
  std::string text;
  const auto add = [&](const char* role, const std::vector<std::string>& names) {
    for (const std::string& name : names) text += fmt::format("{} {}\n", role, name);
  };
  add("dense", schema.dense);
  add("id", schema.ids);
  add("bag", schema.bags);
  add("weighted", schema.weighted);
  if (schema.has_sample_weight) text += "sample_weight\n";
  if (schema.has_time) text += "time\n";
  if (schema.has_group) text += "group\n";
  return text;
}

/// Names and sizes; where the rows are generated the configuration says all.
Result<std::string> files_of(const DataOptions& data, Files& files) {
  if (data.format == DataFormat::synthetic) return std::string();
  RECMILL_ASSIGN_OR_RETURN(const auto paths, reader::data_files(data, Subset::all, files));
  std::string text;
  for (const std::string& path : paths) {
    RECMILL_ASSIGN_OR_RETURN(const auto file, files.open(path));
    text += fmt::format("{}, {} bytes\n", path, file->size());
  }
  return text;
}

/// The first line in which they differ, of each.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b) {
  std::istringstream lines_a(a), lines_b(b);
  while (true) {
    std::string line_a, line_b;
    const bool more_a = !std::getline(lines_a, line_a).fail();
    const bool more_b = !std::getline(lines_b, line_b).fail();
    if (line_a != line_b || !more_a || !more_b)
      return {more_a ? line_a : "nothing", more_b ? line_b : "nothing"};
  }
}

}  // namespace

Status same_everywhere(const std::string& what, const std::string& text,
                       Communicator& communicator) {
  RECMILL_ASSIGN_OR_RETURN(const Received received,
                           communicator.all_gather(std::as_bytes(std::span(text))));
  const auto text_of_rank = [&](int rank) {
    const auto bytes = received.from(rank);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const std::string first = text_of_rank(0);
  std::string differences;
  int count = 0;
  for (int rank = 1; rank < communicator.ranks(); ++rank) {
    const std::string other = text_of_rank(rank);
    if (other == first || ++count > kMostNamed) continue;
    const auto [here, there] = first_difference(other, first);
    differences += fmt::format("{}{} has another {} than {}: {}; there {}", count == 1 ? "" : "; ",
                               communicator.name(rank), what, communicator.name(0), here, there);
  }
  if (count > kMostNamed) differences += fmt::format("; and {} more", count - kMostNamed);
  return count == 0 ? Status() : Status::BadRequest(differences);
}

namespace {

// What LibTorch computes by is known once it is there.
Status same_torch(const RunOptions& options, Communicator& communicator) {
  if (!model::needs_torch(options.model.kind) && !layers_are_on_gpu(options)) return {};
  RECMILL_ASSIGN_OR_RETURN(const model::TorchLibrary* torch, model::torch_library());
  return same_everywhere("build", "LibTorch " + torch->version(), communicator);
}

}  // namespace

Status shake_hands(const ResolvedRun& run, const JobIdentity& identity, Communicator& communicator,
                   Files& files) {
  RECMILL_RETURN_IF_ERROR(same_everywhere("build", identity.build, communicator));
  RECMILL_RETURN_IF_ERROR(same_everywhere("configuration", identity.config, communicator));
  RECMILL_RETURN_IF_ERROR(same_torch(run.options, communicator));
  RECMILL_ASSIGN_OR_RETURN(const std::string of_data, files_of(run.options.data, files));
  RECMILL_RETURN_IF_ERROR(same_everywhere("list of data files", of_data, communicator));
  RECMILL_RETURN_IF_ERROR(same_everywhere("list of columns", text_of(run.schema), communicator));
  return same_everywhere("placement plan", run.plan_text, communicator);
}

}  // namespace recmill::train
