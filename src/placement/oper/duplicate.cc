// SPDX-License-Identifier: Apache-2.0
#include "placement/oper/duplicate.h"

#include <algorithm>
#include <numeric>

namespace recmill::placement {
namespace {

class Duplication {
 public:
  Duplication(const Problem& problem, std::span<const Load> loads, std::vector<FetchPath>& paths,
              std::vector<double>& spare, DeviceCosts& costs)
      : problem_(problem),
        loads_(loads),
        paths_(paths),
        spare_(spare),
        costs_(costs),
        devices_(costs.devices()),
        hottest_(loads.size()),
        next_(static_cast<size_t>(devices_) * devices_) {
    std::iota(hottest_.begin(), hottest_.end(), 0);
    std::ranges::stable_sort(hottest_, std::greater<>(), [&](size_t p) {
      return loads[p].fetched / std::max(loads[p].memory, 1e-300);
    });
    rank_.resize(loads.size());
    for (size_t i = 0; i < hottest_.size(); ++i) rank_[hottest_[i]] = i;
  }

  void run() {
    std::vector<bool> stopped(devices_);
    for (int left = devices_; left > 0;) {
      for (int device = 0; device < devices_; ++device) {
        if (stopped[device] || copy_one(device)) continue;
        stopped[device] = true;
        --left;
      }
    }
  }

 private:
  size_t& next(int device, int from) {
    return next_[static_cast<size_t>(device) * devices_ + from];
  }

  bool copy_one(int device) {
    const int from = slowest_source(device);
    if (from < 0) return false;
    // Spare memory only shrinks: what did not fit once is not looked at again.
    for (size_t& i = next(device, from); i < hottest_.size(); ++i) {
      const size_t p = hottest_[i];
      if (paths_[p].from[device] != from || loads_[p].memory >= spare_[device]) continue;
      if (loads_[p].fetched <= 0) return false;
      copy(p, device);
      return true;
    }
    return false;
  }

  int slowest_source(int device) const {
    int slowest = -1;
    double most = 0;
    for (int from = 0; from < devices_; ++from) {
      if (from == device) continue;
      const double seconds = costs_.fetch_seconds(device, from);
      if (seconds > most) most = seconds, slowest = from;
    }
    return slowest;
  }

  void copy(size_t p, int device) {
    FetchPath& path = paths_[p];
    costs_.remove(loads_[p], path);
    path.from[device] = device;
    spare_[device] -= loads_[p].memory;
    for (int other = 0; other < devices_; ++other) {
      if (other == device || path.from[other] == other) continue;
      const double now = problem_.cluster.link(other, path.from[other]).byte_seconds;
      if (problem_.cluster.link(other, device).byte_seconds >= now) continue;
      path.from[other] = device;
      size_t& first = next(other, device);
      first = std::min(first, rank_[p]);
    }
    costs_.add(loads_[p], path);
  }

  const Problem& problem_;
  std::span<const Load> loads_;
  std::vector<FetchPath>& paths_;
  std::vector<double>& spare_;
  DeviceCosts& costs_;
  const int devices_;
  std::vector<size_t> hottest_;  // loads
  std::vector<size_t> rank_;     // [loads] in hottest_
  std::vector<size_t> next_;     // [device][from]: of hottest_, the first to look at
};

}  // namespace

void duplicate_for_inference(const Problem& problem, std::span<const Load> loads,
                             std::vector<FetchPath>& paths, std::vector<double>& spare,
                             DeviceCosts& costs) {
  Duplication(problem, loads, paths, spare, costs).run();
}

double mean_seconds(const Problem& problem, const Load& load, bool everywhere) {
  const int devices = problem.devices();
  double sum = 0;
  for (int home = 0; home < devices; ++home) {
    DeviceCosts costs(problem);
    costs.add(load,
              everywhere ? FetchPath::everywhere(home, devices) : FetchPath::at(home, devices));
    for (int phase = 0; phase < DeviceCosts::kPhases; ++phase)
      for (int to = 0; to < devices; ++to)
        for (int from = 0; from < devices; ++from)
          if (to != from)
            sum += costs.moved(static_cast<DeviceCosts::Phase>(phase), to, from) *
                   problem.cluster.link(to, from).byte_seconds;
  }
  return sum / devices / devices;
}

std::vector<size_t> duplicate_for_training(const Problem& problem, std::span<const Load> loads,
                                           double extra) {
  std::vector<double> gain(loads.size());
  std::vector<size_t> order;
  for (size_t p = 0; p < loads.size(); ++p) {
    gain[p] = mean_seconds(problem, loads[p], false) - mean_seconds(problem, loads[p], true);
    if (gain[p] > 0) order.push_back(p);
  }
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](size_t p) { return gain[p] / std::max(loads[p].memory, 1e-300); });
  std::vector<size_t> chosen;
  for (const size_t p : order) {
    const double bytes = loads[p].memory * (problem.devices() - 1);
    if (bytes > extra) continue;
    extra -= bytes;
    chosen.push_back(p);
  }
  return chosen;
}

}  // namespace recmill::placement
