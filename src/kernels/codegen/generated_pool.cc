// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/generated_pool.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "device/buffer.h"
#include "kernels/embedding_pool/empty_pieces.h"

namespace recmill::kernels::codegen {
namespace {

namespace abi = recmill_generated;

static_assert(sizeof(abi::Piece) == sizeof(Piece) &&
              offsetof(abi::Piece, feature) == offsetof(Piece, feature) &&
              offsetof(abi::Piece, first) == offsetof(Piece, first) &&
              offsetof(abi::Piece, last) == offsetof(Piece, last));

constexpr int64_t kLine = 64;

bool on_cache_line(const std::byte* data) {
  return reinterpret_cast<uintptr_t>(data) % kLine == 0;
}

/// Whether the function was made for such rows and bags.
bool made_for(const PoolFunction& function, const PoolTask& task) {
  const bool weights =
      (task.bags.weights != nullptr) == function.weighted || task.bags.lookups() == 0;
  return task.rows.dim == function.dim && task.rows.stride == function.row_bytes &&
         task.rows.precision == function.precision && task.pooling == function.pooling && weights &&
         on_cache_line(task.rows.data);
}

}  // namespace

int64_t vector_lanes() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 16;
  if (__builtin_cpu_supports("avx")) return 8;
#endif
  return 4;
}

PoolFunction pool_function(const GeneratedFeature& feature) {
  const PoolTemplate& of = *feature.kernel->of;
  PoolFunction function{{of.name, {}},          feature.rows.dim, feature.rows.stride,
                        feature.rows.precision, feature.pooling,  feature.weighted};
  for (size_t p = 0; p < of.tunables.size(); ++p)
    function.schedule.parameters.push_back({of.tunables[p].name, feature.kernel->values[p]});
  if (!has_generated_form(of.name))
    function.scratch_bytes =
        scratch_bytes(*feature.kernel, feature.rows, feature.pooling, feature.weighted);
  return function;
}

std::vector<PoolFunction> pool_functions(std::span<const GeneratedFeature> features) {
  std::vector<PoolFunction> functions;
  for (const GeneratedFeature& feature : features) {
    if (feature.kernel->of != nullptr) functions.push_back(pool_function(feature));
  }
  return functions;
}

// What a feature's pieces get; the first part is what generated code sees.
struct GeneratedPool::Bound : abi::Feature {
  const PoolTask* task = nullptr;
  const PoolKernel* kernel = nullptr;
};

GeneratedPool::Bound GeneratedPool::bind(const FusedPool& fused, const PoolTask& task,
                                         int64_t feature) const {
  const Place& place = places_[feature];
  Bound bound;
  bound.offsets = task.bags.offsets;
  bound.lookups = task.bags.rows;
  bound.weights = task.bags.weights;
  bound.rows = reinterpret_cast<const char*>(task.rows.data);
  bound.row_count = task.rows.count;
  bound.covering_lookups = covering_lookups(task.rows);
  bound.out = task.out;
  bound.out_stride = task.stride;
  bound.task = &task;
  bound.kernel = &fused.kernel_for(task, feature);
  const bool chosen = bound.kernel == &fused.kernels()[feature];
  bound.schedule = place.schedule >= 0 && chosen &&
                           made_for(kernels_[place.kernel].functions[place.schedule], task)
                       ? place.schedule
                       : -1;
  bound.by_pointer = [](const abi::Feature* of, int64_t first, int64_t last, int64_t staging,
                        void* scratch) {
    const auto& that = *static_cast<const Bound*>(of);
    that.kernel->of->body({that.task, first, last, staging != 0}, that.kernel->values,
                          static_cast<std::byte*>(scratch));
  };
  return bound;
}

size_t GeneratedPool::of_one_kernel(std::span<const PoolTask> tasks,
                                    std::span<const Piece> pieces) const {
  size_t count = 1;
  for (; count < pieces.size(); ++count) {
    const Piece& piece = pieces[count];
    if (piece.feature == pieces[count - 1].feature) continue;
    if (places_[piece.feature].kernel != places_[pieces[0].feature].kernel ||
        is_empty(tasks[piece.feature], piece))
      break;
  }
  return count;
}

void GeneratedPool::run(const FusedPool& fused, std::span<const PoolTask> tasks, const TaskMap& map,
                        ThreadPool& pool) const {
  RECMILL_CHECK(tasks.size() == places_.size());
  std::vector<Bound> bound;
  std::vector<const abi::Feature*> features;
  bound.reserve(tasks.size());
  int64_t bytes = 0;
  for (const Kernel& kernel : kernels_) bytes = std::max(bytes, kernel.scratch_bytes);
  for (size_t f = 0; f < tasks.size(); ++f) {
    const PoolTask& task = tasks[f];
    bound.push_back(bind(fused, task, static_cast<int64_t>(f)));
    features.push_back(&bound.back());
    if (bound.back().schedule < 0)  // the table may have other rows than the one of make()
      bytes = std::max(bytes, scratch_bytes(*bound.back().kernel, task.rows, task.pooling,
                                            task.bags.weights != nullptr));
  }
  pool.run(map.tasks(), [&](int64_t t) {
    struct alignas(kLine) Line {
      std::byte bytes[kLine];
    };
    std::vector<Line> scratch((bytes + kLine - 1) / kLine);
    auto pieces = std::span(map.pieces).subspan(map.begins[t], map.begins[t + 1] - map.begins[t]);
    while (!pieces.empty()) {
      size_t count = zero_empty(tasks, pieces);
      if (count == 0) {
        count = of_one_kernel(tasks, pieces);
        kernels_[places_[pieces[0].feature].kernel].run(
            features.data(), reinterpret_cast<const abi::Piece*>(pieces.data()),
            static_cast<int64_t>(count), scratch.data());
      }
      pieces = pieces.subspan(count);
    }
  });
}

int64_t GeneratedPool::functions() const {
  int64_t count = 0;
  for (const Kernel& kernel : kernels_) count += static_cast<int64_t>(kernel.functions.size());
  return count;
}

Result<GeneratedPool::Kernel> GeneratedPool::load(std::shared_ptr<const Library> library,
                                                  PoolSource source) {
  const auto* const version =
      static_cast<const int64_t*>(library->symbol("recmill_prelude_version"));
  const auto* const scratch = static_cast<const int64_t*>(library->symbol("recmill_scratch_bytes"));
  const auto run = reinterpret_cast<abi::Run>(library->symbol("recmill_run"));
  if (version == nullptr || *version != abi::kPreludeVersion || scratch == nullptr ||
      run == nullptr)
    return Status::Failed(library->path() + ": not of this program; remove it");
  Kernel kernel{std::move(library), run, std::move(source.functions), *scratch};
  RECMILL_RETURN_IF_ERROR(check(kernel));
  return kernel;
}

// Each function once on a small table, before anybody relies on it.
Status GeneratedPool::check(const Kernel& kernel) {
  constexpr int64_t kRows = 7, kSamples = 5;
  const std::vector<int64_t> ones = {0, 1, 2, 3, 4, 5}, others = {0, 2, 2, 67, 200, 201};
  std::vector<int64_t> lookups(201);
  std::vector<float> weights(lookups.size());
  for (size_t j = 0; j < lookups.size(); ++j) {
    lookups[j] = static_cast<int64_t>(j * j + j / 3) % kRows;
    weights[j] = 0.3f + static_cast<float>(j % 11) * 0.7f;
  }
  for (size_t f = 0; f < kernel.functions.size(); ++f) {
    const PoolFunction& function = kernel.functions[f];
    RECMILL_ASSIGN_OR_RETURN(const Buffer table, Buffer::allocate(kRows * function.row_bytes));
    // Bit patterns of small numbers in every precision, none of them special.
    const auto halves = std::span(reinterpret_cast<uint16_t*>(table.data()), table.size() / 2);
    for (size_t i = 0; i < halves.size(); ++i)
      halves[i] = static_cast<uint16_t>(0x3800 + i * 2654435761u % 0x400);
    PoolTask task;
    task.bags = {function.schedule.of == "one_each" ? ones.data() : others.data(), lookups.data(),
                 function.weighted ? weights.data() : nullptr, kSamples,
                 function.schedule.of == "one_each"};
    task.rows = {table.data(),      kRows, function.row_bytes, function.dim, 0, nullptr,
                 function.precision};
    task.pooling = function.pooling;
    task.stride = function.dim + 3;
    std::vector<float> expected(lookups.size() * task.stride, -1.0f), found = expected;
    task.out = expected.data();
    embedding_pool_reference(task);
    const abi::Feature feature{task.bags.offsets,
                               task.bags.rows,
                               task.bags.weights,
                               reinterpret_cast<const char*>(task.rows.data),
                               kRows,
                               covering_lookups(task.rows),
                               found.data(),
                               task.stride,
                               static_cast<int64_t>(f),
                               nullptr};
    const abi::Feature* const features = &feature;
    const abi::Piece pieces[] = {{0, 0, 2}, {0, 2, kSamples}};
    kernel.run(&features, pieces, 2, nullptr);
    if (std::memcmp(expected.data(), found.data(), expected.size() * sizeof(float)) != 0)
      return Status::Failed(kernel.library->path() + ": '" + function.name() +
                            "' answers otherwise than the reference");
  }
  return {};
}

Result<std::shared_ptr<const GeneratedPool>> GeneratedPool::make(
    std::span<const GeneratedFeature> features, const PoolSourceOptions& options,
    LibraryCache& cache) {
  std::shared_ptr<GeneratedPool> made(new GeneratedPool());
  auto sources = pool_sources(pool_functions(features), options);
  std::vector<LibrarySource> texts;
  texts.reserve(sources.size());
  for (const PoolSource& source : sources) texts.push_back({source.text});
  RECMILL_ASSIGN_OR_RETURN(const auto libraries, cache.load(texts));
  for (size_t k = 0; k < sources.size(); ++k) {
    RECMILL_ASSIGN_OR_RETURN(Kernel kernel, load(libraries[k], std::move(sources[k])));
    made->kernels_.push_back(std::move(kernel));
  }
  for (const GeneratedFeature& feature : features) {
    Place place;
    for (size_t k = 0; k < made->kernels_.size() && feature.kernel->of != nullptr; ++k) {
      const auto& functions = made->kernels_[k].functions;
      const auto at = std::find(functions.begin(), functions.end(), pool_function(feature));
      if (at != functions.end()) place = {static_cast<int64_t>(k), at - functions.begin()};
    }
    made->places_.push_back(place);
  }
  return std::shared_ptr<const GeneratedPool>(std::move(made));
}

}  // namespace recmill::kernels::codegen
