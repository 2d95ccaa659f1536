// SPDX-License-Identifier: Apache-2.0
#include "placement/oper/targets.h"

#include <algorithm>

#include "placement/few/time_program.h"
#include "solve/solve.h"

namespace recmill::placement {
namespace {

using solve::kInfinity;

/// Of a budget: what partitions, which are not cut at will, may have taken more than it.
constexpr double kCutting = 0.001;

Targets equal_targets(const Problem& problem, const Load& rest, const DeviceCosts& placed) {
  Targets targets;
  double fetched = rest.fetched, memory = rest.memory, limits = 0;
  for (int d = 0; d < problem.devices(); ++d) {
    limits += static_cast<double>(problem.cluster.devices[d].memory_bytes);
    fetched += fetched_from(placed, d);
    memory += placed.memory(d);
  }
  for (int d = 0; d < problem.devices(); ++d) {
    targets.fetched.push_back(fetched / problem.devices() - fetched_from(placed, d));
    const auto own = static_cast<double>(problem.cluster.devices[d].memory_bytes);
    targets.memory.push_back(memory * own / limits - placed.memory(d));
  }
  return targets;
}

/// Columns: how much of the access-bounded rows, and of the others, each device has.
class ShareProgram {
 public:
  ShareProgram(const Problem& problem, const Load& hot, const Load& cold, const DeviceCosts& placed,
               std::span<const double> budgets)
      : problem_(problem), hot_(hot), cold_(cold), placed_(placed), time_(problem, unit()) {
    for (int d = 0; d < problem.devices(); ++d) {
      for (const auto& [load, columns] :
           {std::pair{&hot_, &hot_share_}, std::pair{&cold_, &cold_share_}}) {
        columns->push_back(time_.program().add_column(0.0, 0.0, 1.0));
        DeviceCosts costs(problem);
        costs.add(*load, FetchPath::at(d, problem.devices()));
        time_.add(columns->back(), costs);
      }
    }
    for (const auto* columns : {&hot_share_, &cold_share_}) {
      std::vector<solve::Entry> all;
      for (const int64_t column : *columns) all.push_back({column, 1.0});
      time_.program().add_row(1.0, 1.0, all);
    }
    time_.finish(placed);
    fill_ = time_.program().add_column(0.0, 0.0, kInfinity);
    for (int d = 0; d < problem.devices(); ++d) {
      const auto memory = static_cast<double>(problem.cluster.devices[d].memory_bytes);
      add_memory_row(d, std::min(budgets[d] * (1 + kCutting) / memory, 1.0), 0);
      add_memory_row(d, 0.0, -1.0);
    }
  }

  Result<Targets> solve() {
    RECMILL_ASSIGN_OR_RETURN(const double seconds, minimum());
    // As fast as that, memory in proportion, and of such ways the one of equal shares.
    solve::MixedIntegerProgram& program = time_.program();
    program.add_row(-kInfinity, seconds * (1 + 1e-6) + 1e-9, {{time_.time(), 1.0}});
    const int64_t share = program.add_column(1e-3, 0.0, kInfinity);
    for (const int64_t column : hot_share_)
      program.add_row(-kInfinity, 0.0, {{column, 1.0}, {share, -1.0}});
    weights_ = {1e-6, 1.0};
    RECMILL_RETURN_IF_ERROR(minimum().status());
    Targets targets;
    targets.seconds = seconds * time_.unit();
    for (int d = 0; d < problem_.devices(); ++d) {
      const double hot = solution_.values[hot_share_[d]], cold = solution_.values[cold_share_[d]];
      targets.fetched.push_back(hot_.fetched * hot + cold_.fetched * cold);
      targets.memory.push_back(hot_.memory * hot + cold_.memory * cold);
    }
    return targets;
  }

 private:
  double unit() const {
    DeviceCosts costs = placed_;
    for (const Load* load : {&hot_, &cold_})
      for (int d = 0; d < problem_.devices(); ++d)
        costs.add(*load * (1.0 / problem_.devices()), FetchPath::at(d, problem_.devices()));
    return std::max(costs.largest_seconds(), 1e-300);
  }

  // Memory of a device in units of its limit is at most `limit`, or at most the fill's column.
  void add_memory_row(int device, double limit, double fill) {
    const auto bytes = static_cast<double>(problem_.cluster.devices[device].memory_bytes);
    std::vector<solve::Entry> entries;
    for (const auto& [column, load] :
         {std::pair{hot_share_[device], &hot_}, std::pair{cold_share_[device], &cold_}})
      if (load->memory / bytes > 1e-9) entries.push_back({column, load->memory / bytes});
    if (fill != 0) entries.push_back({fill_, fill});
    if (entries.empty()) return;
    time_.program().add_row(-kInfinity, limit - placed_.memory(device) / bytes, std::move(entries));
  }

  Result<double> minimum() {
    solve::MixedIntegerProgram program = time_.program();
    program.set_cost(time_.time(), weights_.first);
    program.set_cost(fill_, weights_.second);
    RECMILL_ASSIGN_OR_RETURN(solution_, solve::solve(program));
    if (solution_.outcome != solve::Outcome::optimal)
      return Status::BadRequest("rows do not fit the devices: no way to share them out does");
    return solution_.values[time_.time()];
  }

  const Problem& problem_;
  const Load hot_, cold_;
  const DeviceCosts& placed_;
  TimeProgram time_;
  std::vector<int64_t> hot_share_, cold_share_;  // [devices], columns
  int64_t fill_ = 0;
  std::pair<double, double> weights_{1.0, 0.0};  // of time and of fill
  solve::Solution solution_;
};

}  // namespace

Result<Targets> find_targets(const Problem& problem, const Load& rest, const Load& access_bounded,
                             const DeviceCosts& placed, std::span<const double> budgets) {
  if (is_uniform(problem.cluster)) return equal_targets(problem, rest, placed);
  Load cold = rest;
  cold += access_bounded * -1;
  return ShareProgram(problem, access_bounded, cold, placed, budgets).solve();
}

}  // namespace recmill::placement
