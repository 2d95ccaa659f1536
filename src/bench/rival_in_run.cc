// SPDX-License-Identifier: Apache-2.0
#include "bench/rival_in_run.h"

#include <vector>

#include "base/json/json.h"

namespace recmill::bench {

Json RivalInRun::ask(const std::string& request, const Json& value, int limit_s) {
  if (!takes_part()) return nullptr;
  auto answer = process_->ask({{request, value}}, limit_s);
  if (answer.ok()) return *answer;
  leave(answer.status());
  return nullptr;
}

double RivalInRun::seconds(const std::string& request, std::span<const int64_t> order) {
  const Json answer = ask(request, std::vector<int64_t>(order.begin(), order.end()));
  return answer.is_null() ? 0 : answer["seconds"].get<double>();
}

void RivalInRun::leave(const Status& why) {
  status_ = Status::Failed("no times of " + system_ + ": " + why.message());
  process_.reset();
}

}  // namespace recmill::bench
