// SPDX-License-Identifier: Apache-2.0
#include "placement/device_costs.h"

#include <algorithm>

namespace recmill::placement {
namespace {

constexpr double kIdBytes = 8;
constexpr double kNothing = 1e-6;  // bytes: what rounding leaves when loads are taken off

}  // namespace

Load& Load::operator+=(const Load& other) {
  memory += other.memory;
  looked_up += other.looked_up;
  fetched += other.fetched;
  requested += other.requested;
  summed += other.summed;
  aggregated += other.aggregated;
  reduced += other.reduced;
  return *this;
}

Load Load::operator*(double factor) const {
  return {memory * factor, looked_up * factor,  fetched * factor, requested * factor,
          summed * factor, aggregated * factor, reduced * factor};
}

Load load_of(const Problem& problem, const PlacedTable& table, double rows, const RowUse& use) {
  const double values = static_cast<double>(table.spec.dim) * sizeof(float);
  const double fetched_rows = problem.dedup_fetch ? use.distinct : use.accesses;
  Load load;
  load.memory = rows * static_cast<double>(table.row_bytes);
  load.looked_up = fetched_rows * values;
  load.fetched = fetched_rows * values;
  load.requested = fetched_rows * kIdBytes;
  if (!problem.training || table.spec.frozen) return load;
  load.summed = fetched_rows * (values + kIdBytes);
  load.aggregated = use.distinct * (values + kIdBytes);
  switch (problem.reduce) {
    case CopyReduce::automatic:
    case CopyReduce::sparse:
      load.reduced = use.touched * (values + kIdBytes);
      break;
    case CopyReduce::dense:
      load.reduced = rows * values;
      break;
    case CopyReduce::all_gather:
      load.reduced = load.aggregated;
      break;
  }
  return load;
}

Balance balance_of(std::span<const double> values) {
  Balance balance;
  if (values.empty()) return balance;
  balance.largest = std::ranges::max(values);
  balance.smallest = std::ranges::min(values);
  const auto count = static_cast<double>(values.size());
  for (const double value : values) balance.mean += value / count;
  for (const double value : values)
    balance.variance += (value - balance.mean) * (value - balance.mean) / count;
  return balance;
}

DeviceCosts::DeviceCosts(const Problem& problem)
    : problem_(&problem),
      devices_(problem.devices()),
      phases_(problem.training ? kPhases : sum),
      memory_(devices_),
      looked_up_(devices_) {
  for (auto& matrix : moved_) matrix.resize(static_cast<size_t>(devices_) * devices_);
}

void DeviceCosts::add(const Load& load, const FetchPath& path, double sign) {
  const Load part = sign == 1 ? load : load * sign;
  for (int device = 0; device < devices_; ++device) {
    const int from = path.from[device];
    looked_up_[from] += part.looked_up;
    if (from == device) {
      memory_[device] += part.memory;
    } else {
      pair(request, from, device) += part.requested;
      pair(fetch, device, from) += part.fetched;
    }
  }
  if (problem_->training) add_gradients(part, path);
}

// Of rows with copies every device sends sums of what it has looked up, whether it has a copy or
// not.
void DeviceCosts::add_gradients(const Load& load, const FetchPath& path) {
  const bool copied = path.copies() > 1;
  const CopyReduce by = problem_->reduce;
  const bool through_home = by == CopyReduce::automatic || by == CopyReduce::sparse;
  for (int device = 0; device < devices_; ++device) {
    if (!copied || through_home) {
      if (device == path.home) continue;
      pair(sum, path.home, device) += copied ? load.aggregated : load.summed;
      if (copied && path.has_copy(device)) pair(reduce, device, path.home) += load.reduced;
      continue;
    }
    for (int other = 0; other < devices_; ++other) {
      if (other == device) continue;
      if (by == CopyReduce::dense) {
        // Each device finishes an equal part, and all get it.
        pair(sum, other, device) += load.reduced / devices_;
        pair(reduce, other, device) += load.reduced / devices_;
      } else if (path.has_copy(other)) {
        pair(sum, other, device) += load.reduced;
      }
    }
  }
}

void DeviceCosts::add_to_round(size_t round, int to, int from, double bytes) {
  if (round >= rounds_.size()) rounds_.resize(round + 1, Moved(memory_.size() * memory_.size()));
  rounds_[round][static_cast<size_t>(to) * devices_ + from] += bytes;
}

double DeviceCosts::moved_in_rounds(int to, int from) const {
  double bytes = 0;
  for (const Moved& round : rounds_) bytes += round[static_cast<size_t>(to) * devices_ + from];
  return bytes;
}

double DeviceCosts::port_seconds(const Moved& moved, int device) const {
  double sent = 0, received = 0;
  for (int other = 0; other < devices_; ++other) {
    if (other == device) continue;
    const LinkSpec& in = problem_->cluster.link(device, other);
    const LinkSpec& out = problem_->cluster.link(other, device);
    const double bytes_in = moved[static_cast<size_t>(device) * devices_ + other];
    const double bytes_out = moved[static_cast<size_t>(other) * devices_ + device];
    if (bytes_in > kNothing) received += in.message_seconds + bytes_in * in.byte_seconds;
    if (bytes_out > kNothing) sent += out.message_seconds + bytes_out * out.byte_seconds;
  }
  return std::max(sent, received);
}

double DeviceCosts::seconds(Phase phase, int device) const {
  return port_seconds(moved_[phase], device);
}

double DeviceCosts::rounds_seconds() const {
  double sum = 0;
  for (const Moved& round : rounds_) {
    double slowest = 0;
    for (int device = 0; device < devices_; ++device)
      slowest = std::max(slowest, port_seconds(round, device));
    sum += slowest;
  }
  return sum;
}

double DeviceCosts::lookup_seconds(int device) const {
  return looked_up_[device] * problem_->cluster.link(device, device).byte_seconds;
}

double DeviceCosts::seconds(int device) const {
  double sum = lookup_seconds(device) + rounds_seconds();
  for (int phase = 0; phase < phases_; ++phase) sum += seconds(static_cast<Phase>(phase), device);
  return sum;
}

double DeviceCosts::largest_seconds() const {
  double largest = 0;
  for (int device = 0; device < devices_; ++device) largest = std::max(largest, seconds(device));
  return largest;
}

double DeviceCosts::fetch_seconds(int to, int from) const {
  return moved(fetch, to, from) * problem_->cluster.link(to, from).byte_seconds;
}

}  // namespace recmill::placement
