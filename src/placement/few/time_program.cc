// SPDX-License-Identifier: Apache-2.0
#include "placement/few/time_program.h"

#include <utility>

namespace recmill::placement {

using solve::kInfinity;

TimeProgram::TimeProgram(const Problem& problem, double unit)
    : problem_(problem),
      unit_(unit),
      time_(program_.add_column(1.0, 0.0, kInfinity)),
      sent_(static_cast<size_t>(DeviceCosts::kPhases) * problem.devices()),
      received_(sent_.size()),
      lookups_(problem.devices()) {}

void TimeProgram::add_seconds(Port& port, int64_t column, double seconds) {
  const double value = seconds / unit_;
  if (value <= 1e-9) return;  // below what the solver takes for 0
  if (!port.entries.empty() && port.entries.back().column == column) {
    port.entries.back().value += value;
  } else {
    port.entries.push_back({column, value});
  }
}

void TimeProgram::add_moved(int64_t column, DeviceCosts::Phase phase, int to, int from,
                            double bytes) {
  const double seconds = bytes * problem_.cluster.link(to, from).byte_seconds;
  add_seconds(received_[at(phase, to)], column, seconds);
  add_seconds(sent_[at(phase, from)], column, seconds);
}

void TimeProgram::add(int64_t column, const DeviceCosts& costs) {
  for (int p = 0; p < DeviceCosts::kPhases; ++p) {
    const auto phase = static_cast<DeviceCosts::Phase>(p);
    for (int to = 0; to < costs.devices(); ++to)
      for (int from = 0; from < costs.devices(); ++from)
        if (to != from) add_moved(column, phase, to, from, costs.moved(phase, to, from));
  }
  for (int d = 0; d < costs.devices(); ++d)
    add_seconds(lookups_[d], column, costs.lookup_seconds(d));
}

void TimeProgram::add_fetch(int64_t column, const Load& load, int to, int from) {
  const double byte_seconds = problem_.cluster.link(from, from).byte_seconds;
  add_seconds(lookups_[from], column, load.looked_up * byte_seconds);
  if (to == from) return;
  add_moved(column, DeviceCosts::fetch, to, from, load.fetched);
  add_moved(column, DeviceCosts::request, from, to, load.requested);
}

void TimeProgram::finish(const DeviceCosts& placed) {
  for (int d = 0; d < problem_.devices(); ++d) {
    std::vector<solve::Entry> sum = std::move(lookups_[d].entries);
    const double fixed = placed.lookup_seconds(d) / unit_;
    for (int p = 0; p < DeviceCosts::kPhases; ++p) {
      const auto phase = static_cast<DeviceCosts::Phase>(p);
      double in = 0, out = 0;
      for (int other = 0; other < problem_.devices(); ++other) {
        if (other == d) continue;
        in += placed.moved(phase, d, other) * problem_.cluster.link(d, other).byte_seconds / unit_;
        out += placed.moved(phase, other, d) * problem_.cluster.link(other, d).byte_seconds / unit_;
      }
      const int64_t busy = program_.add_column(0.0, 0.0, kInfinity);
      for (auto& [port, bytes] :
           {std::pair{&received_[at(p, d)], in}, std::pair{&sent_[at(p, d)], out}}) {
        std::vector<solve::Entry> entries = std::move(port->entries);
        entries.push_back({busy, -1.0});
        program_.add_row(-kInfinity, -bytes, std::move(entries));
      }
      sum.push_back({busy, 1.0});
    }
    sum.push_back({time_, -1.0});
    program_.add_row(-kInfinity, -fixed, std::move(sum));
  }
}

}  // namespace recmill::placement
