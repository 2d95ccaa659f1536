// SPDX-License-Identifier: Apache-2.0
#include "config/workloads.h"

#include <vector>

#include "config/option_binder.h"

namespace recmill::config {

std::string workload_names() {
  std::string names;
  for (const Workload& workload : workloads()) {
    names += (names.empty() ? "" : ", ") + std::string(workload.name);
  }
  return names;
}

Result<std::string_view> workload_text(const std::string& name) {
  std::vector<std::string> names;
  for (const Workload& workload : workloads()) {
    if (workload.name == name) return workload.text;
    names.emplace_back(workload.name);
  }
  return Status::BadRequest(name + ": is neither a file nor a workload" + suggestion(name, names) +
                            " (workloads: " + workload_names() + ")");
}

}  // namespace recmill::config
