// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstddef>

#include "kernels/schedule/task_map.h"
#include "pool_op/pool_op.h"

namespace recmill::pool_op {
namespace {

namespace abi = recmill_generated;
using kernels::Piece;

static_assert(sizeof(abi::Piece) == sizeof(Piece) &&
              offsetof(abi::Piece, feature) == offsetof(Piece, feature) &&
              offsetof(abi::Piece, first) == offsetof(Piece, first) &&
              offsetof(abi::Piece, last) == offsetof(Piece, last));

constexpr double kLeastTask = 5000.0;  // nanoseconds: below, handing it out costs more

/// What a feature's pieces get.
struct Bound : abi::Feature {
  int32_t kernel = 0;
};

class Call {
 public:
  Call(const Inputs& inputs, int threads) : inputs_(inputs) {
    std::vector<kernels::FeatureWork> work;
    bound_.reserve(inputs.bags.size());
    for (size_t f = 0; f < inputs.bags.size(); ++f) {
      const JaggedView& bags = inputs.bags[f];
      bound_.push_back(bind(f));
      features_.push_back(&bound_.back());
      work.push_back({bags.offsets, bags.samples, bags.lookups(), model.cpu[f].per_lookup,
                      model.cpu[f].per_sample});
    }
    map_tasks(work, {.threads = threads, .tile = model.tile, .least_task = kLeastTask}, map_);
  }

  /// Takes tasks until none is left.
  void work() {
    for (int64_t t; (t = next_.fetch_add(1)) < map_.tasks();) run_task(t);
  }

  /// The first lookup that names no row, where work() met one.
  std::string problem() const {
    if (!wrong_.load()) return "";
    for (size_t f = 0; f < bound_.size(); ++f) {
      const JaggedView& bags = inputs_.bags[f];
      for (int64_t j = 0; j < bags.lookups(); ++j) {
        if (is_row(bags.rows[j], bound_[f].row_count)) continue;
        const Table& table = model.tables[model.features[f].table];
        return "feature '" + std::string(model.features[f].name) + "': lookup " +
               std::to_string(j) + " names row " + std::to_string(bags.rows[j]) + ", but table '" +
               table.name + "' has " + std::to_string(bound_[f].row_count);
      }
    }
    return "";
  }

 private:
  static bool is_row(int64_t row, int64_t count) {
    return static_cast<uint64_t>(row) < static_cast<uint64_t>(count);
  }

  Bound bind(size_t f) const {
    const JaggedView& bags = inputs_.bags[f];
    const Rows& rows = inputs_.tables[model.features[f].table];
    const CpuFeature& of = model.cpu[f];
    Bound bound;
    bound.offsets = bags.offsets;
    bound.lookups = bags.rows;
    bound.weights = bags.weights;
    bound.rows = static_cast<const char*>(rows.data);
    bound.row_count = rows.count;
    bound.covering_lookups = (rows.count * of.row_bytes + of.lookup_bytes - 1) / of.lookup_bytes;
    bound.out = inputs_.outputs[f];
    bound.out_stride = model.dim_of(f);
    bound.by_pointer = nullptr;
    const bool one_each = has_one_each(bags);
    const bool suits =
        (one_each || !of.only_one_each) && (!of.stages || bags.lookups() >= bound.covering_lookups);
    const Place place = suits ? of.chosen : one_each ? of.one_each : of.bags;
    bound.kernel = place.kernel;
    bound.schedule = place.schedule;
    return bound;
  }

  bool names_rows(const Piece& piece) const {
    const Bound& of = bound_[piece.feature];
    bool all = true;
    for (int64_t j = of.offsets[piece.first]; j < of.offsets[piece.last]; ++j)
      all &= is_row(of.lookups[j], of.row_count);
    return all;
  }

  // Pieces of one kernel after the other, once their ids are known to be rows; these are then near
  // to the core that pools them.
  void run_task(int64_t task) {
    const Piece* const end = map_.pieces.data() + map_.begins[task + 1];
    for (const Piece* first = map_.pieces.data() + map_.begins[task]; first < end;) {
      const int32_t kernel = bound_[first->feature].kernel;
      const Piece* last = first;
      for (; last < end && bound_[last->feature].kernel == kernel; ++last) {
        if (names_rows(*last)) continue;
        wrong_ = true;
        return;
      }
      model.kernels[kernel](features_.data(), reinterpret_cast<const abi::Piece*>(first),
                            last - first, nullptr);
      first = last;
    }
  }

  const Inputs& inputs_;
  std::vector<Bound> bound_;                   // [features]
  std::vector<const abi::Feature*> features_;  // the same
  kernels::TaskMap map_;
  std::atomic<int64_t> next_{0};
  std::atomic<bool> wrong_{false};
};

}  // namespace

bool has_one_each(const JaggedView& bags) {
  bool all = true;
  for (int64_t i = 0; i < bags.samples; ++i) all &= bags.offsets[i + 1] - bags.offsets[i] == 1;
  return all;
}

std::string problem_of_offsets(size_t feature, const JaggedView& bags, int64_t lookups) {
  bool ascend = true;
  for (int64_t i = 0; i < bags.samples; ++i) ascend &= bags.offsets[i] <= bags.offsets[i + 1];
  if (ascend && bags.offsets[0] == 0 && bags.offsets[bags.samples] == lookups) return "";
  return "feature '" + std::string(model.features[feature].name) +
         "': offsets must ascend from 0 to the number of rows that are looked up, " +
         std::to_string(lookups);
}

std::string pool_on_cpu(const Inputs& inputs, int threads, Parallel parallel) {
  Call call(inputs, threads);
  parallel(
      threads, [](void* of, int64_t) { static_cast<Call*>(of)->work(); }, &call);
  return call.problem();
}

}  // namespace recmill::pool_op

extern "C" __attribute__((visibility("default"))) const recmill::pool_op::Entries*
recmill_pool_op() {
  using namespace recmill::pool_op;
  static const Entries entries = {&model, problem_of_offsets, pool_on_cpu, pool_on_gpu};
  return &entries;
}
