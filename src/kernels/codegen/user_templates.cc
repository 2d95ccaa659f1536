// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/user_templates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/hash.h"
#include "base/key_text.h"
#include "kernels/codegen/embedded_texts.h"
#include "kernels/codegen/recmill_pool_template.h"

namespace recmill::kernels::codegen {
namespace {

static_assert(RECMILL_POOL_RUN == kPoolRun);

int32_t number_of(RowPrecision precision) {
  switch (precision) {
    case RowPrecision::float32:
      return RECMILL_FLOAT32;
    case RowPrecision::bfloat16:
      return RECMILL_BFLOAT16;
    case RowPrecision::float16:
      return RECMILL_FLOAT16;
  }
  return -1;
}

int32_t number_of(Pooling pooling) {
  switch (pooling) {
    case Pooling::sum:
      return RECMILL_SUM;
    case Pooling::mean:
      return RECMILL_MEAN;
    case Pooling::none:
      return RECMILL_NONE;
  }
  return -1;
}

RecmillPoolShape shape_of(const FeatureShape& of, int64_t l2_bytes) {
  return {of.rows,
          of.dim,
          number_of(of.precision),
          number_of(of.pooling),
          of.weighted,
          of.bags.one_each(),
          of.bags.mean,
          of.bags.deviation,
          of.bags.empty_share,
          of.bags.longest,
          l2_bytes};
}

RecmillPoolPiece piece_of(const PoolPiece& of) {
  const PoolTask& task = *of.task;
  return {of.first,
          of.last,
          task.bags.offsets,
          task.bags.rows,
          task.bags.weights,
          reinterpret_cast<const char*>(task.rows.data),
          task.rows.count,
          task.rows.stride,
          task.rows.dim,
          task.out,
          task.stride,
          number_of(task.rows.precision),
          number_of(task.pooling),
          task.bags.one_each,
          of.staging};
}

bool is_name(const char* text) {
  const std::string name = text == nullptr ? "" : text;
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// What is wrong with what the file says; empty: nothing.
std::string problem_of(const RecmillPoolTemplate& of) {
  if (of.version != RECMILL_POOL_TEMPLATE_VERSION)
    return "is of version " + std::to_string(of.version) + ", this program takes " +
           std::to_string(RECMILL_POOL_TEMPLATE_VERSION);
  if (!is_name(of.name)) return "has no name of lower case letters, digits and underscores";
  if (of.valid == nullptr || of.pool == nullptr) return "has no valid() or no pool()";
  if (of.tunable_count > 0 && of.tunables == nullptr) return "has no tunables";
  for (int64_t t = 0; t < of.tunable_count; ++t) {
    const RecmillTunable& tunable = of.tunables[t];
    if (!is_name(tunable.name) || tunable.count < 1 || tunable.values == nullptr)
      return "has a tunable without name or values";
  }
  return "";
}

PoolTemplate template_of(const RecmillPoolTemplate& of) {
  PoolTemplate made;
  made.name = of.name;
  made.meaning = of.meaning == nullptr ? "" : of.meaning;
  made.order = of.reorders != 0 ? Order::reorders : Order::contract;
  for (int64_t t = 0; t < of.tunable_count; ++t) {
    const RecmillTunable& tunable = of.tunables[t];
    made.tunables.push_back({tunable.name,
                             tunable.meaning == nullptr ? "" : tunable.meaning,
                             {tunable.values, tunable.values + tunable.count}});
  }
  made.valid = [valid = of.valid, one_each_only = of.one_each_only != 0](
                   const FeatureShape& shape, ParameterValues values, const DeviceSpec& device) {
    const RecmillPoolShape seen = shape_of(shape, device.l2_bytes);
    return device.kind == DeviceKind::cpu && (!one_each_only || seen.one_each) &&
           valid(&seen, values.data()) != 0;
  };
  made.scratch_bytes = [bytes = of.scratch_bytes](const FeatureShape& shape,
                                                  ParameterValues values) -> int64_t {
    const RecmillPoolShape seen = shape_of(shape, 0);
    return bytes == nullptr ? 0 : bytes(&seen, values.data());
  };
  made.body = [pool = of.pool](const PoolPiece& piece, ParameterValues values, std::byte* scratch) {
    const RecmillPoolPiece seen = piece_of(piece);
    pool(&seen, values.data(), scratch);
  };
  if (of.one_each_only != 0) made.admits = [](const JaggedView& bags) { return bags.one_each; };
  return made;
}

Result<std::string> read_template(const std::string& path, Files& files) {
  auto text = read_text(files, path);
  if (!text.ok()) return Status::BadRequest(text.status().message());
  return text;
}

Status add_template(const std::string& path, const Library& library,
                    std::vector<PoolTemplate>& templates) {
  using Entry = const RecmillPoolTemplate* (*)();
  const auto entry = reinterpret_cast<Entry>(library.symbol("recmill_pool_template"));
  const RecmillPoolTemplate* const of = entry == nullptr ? nullptr : entry();
  if (of == nullptr) return Status::BadRequest(path + ": defines no recmill_pool_template()");
  if (const std::string problem = problem_of(*of); !problem.empty())
    return Status::BadRequest(path + ": its template " + problem);
  for (const PoolTemplate& other : templates) {
    if (other.name == of->name)
      return Status::BadRequest(path + ": there is already a template '" + other.name + "'");
  }
  templates.push_back(template_of(*of));
  return {};
}

// Kernels point to their templates, and code to its library, wherever they are: neither ever goes.
struct Loaded {
  std::vector<std::shared_ptr<const Library>> libraries;
  std::vector<PoolTemplate> templates;
};

}  // namespace

Result<std::span<const PoolTemplate>> pool_templates_with(std::span<const std::string> paths,
                                                          LibraryCache& cache, Files& files) {
  if (paths.empty()) return pool_templates();
  static std::mutex mutex;
  static auto& loaded = *new std::map<std::string, Loaded>;  // by the sources' text
  std::lock_guard lock(mutex);
  std::vector<LibrarySource> sources;
  KeyText all;
  for (const std::string& path : paths) {
    RECMILL_ASSIGN_OR_RETURN(const std::string text, read_template(path, files));
    all.add(path).add(text);
    sources.push_back(
        {.text = text,
         .headers = {{"recmill_pool_template.h", std::string(recmill_pool_template_text())}},
         .name = path});
  }
  const std::string& key = all.text();
  const auto found = loaded.find(key);
  if (found != loaded.end()) return std::span<const PoolTemplate>(found->second.templates);
  Loaded made;
  made.templates.assign(pool_templates().begin(), pool_templates().end());
  for (size_t p = 0; p < paths.size(); ++p) {
    auto library = cache.load({&sources[p], 1});
    if (!library.ok()) return library.status().at(paths[p]);
    RECMILL_RETURN_IF_ERROR(add_template(paths[p], *library->front(), made.templates));
    made.libraries.push_back(std::move(library->front()));
  }
  return std::span<const PoolTemplate>(
      loaded.emplace(key, std::move(made)).first->second.templates);
}

Result<std::string> templates_digest(std::span<const std::string> paths, Files& files) {
  if (paths.empty()) return std::string();
  std::string all;  // records of tuning have this digest: its form stays
  for (const std::string& path : paths) {
    RECMILL_ASSIGN_OR_RETURN(const std::string text, read_template(path, files));
    all += fmt::format("{}\n{}", text.size(), text);
  }
  return fmt::format("{:016x}", hash_bytes(all));
}

}  // namespace recmill::kernels::codegen
