// SPDX-License-Identifier: Apache-2.0
#include "server/host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace recmill::server {
namespace {

constexpr int kMostSlots = 1 << 16;

Result<int> parse_slots(const std::string& word) {
  constexpr std::string_view kKey = "slots=";
  int slots = 0;
  if (!word.starts_with(kKey)) return Status::BadRequest("'" + word + "' is not slots=N");
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data() + kKey.size(), end, slots);
  if (error != std::errc() || rest != end || slots < 1 || slots > kMostSlots)
    return Status::BadRequest(fmt::format("'{}': slots are 1 to {}", word, kMostSlots));
  return slots;
}

}  // namespace

Result<std::vector<Host>> parse_hosts(const std::string& text, const std::string& path) {
  std::vector<Host> hosts;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const auto at = [&](const Status& status) {
      return status.at(fmt::format("{}:{}", path, number));
    };
    std::istringstream words(line.substr(0, line.find('#')));
    Host host{.line = number};
    if (!(words >> host.name)) continue;
    for (std::string word; words >> word;) {
      const auto slots = parse_slots(word);
      if (!slots.ok()) return at(slots.status());
      host.slots = *slots;
    }
    if (std::ranges::any_of(hosts, [&](const Host& other) { return other.name == host.name; }))
      return at(Status::BadRequest("host '" + host.name + "' is named twice"));
    hosts.push_back(host);
  }
  if (hosts.empty()) return Status::BadRequest(path + ": names no host");
  return hosts;
}

std::vector<int> place_ranks(const std::vector<Host>& hosts, int ranks) {
  std::vector<int> placed;
  placed.reserve(hosts.size());
  for (const Host& host : hosts) {
    placed.push_back(std::min(host.slots, ranks));
    ranks -= placed.back();
  }
  RECMILL_CHECK(ranks == 0, std::to_string(ranks) + " ranks without a place");
  return placed;
}

int room(const std::vector<Host>& hosts) {
  int slots = 0;
  for (const Host& host : hosts) slots += host.slots;
  return slots;
}

bool same_host(const std::string& listed, const std::string& own) {
  return listed == own || own.starts_with(listed + ".") || listed.starts_with(own + ".");
}

std::vector<Host> without_host(std::vector<Host> hosts, const std::string& own) {
  std::erase_if(hosts, [&](const Host& host) { return same_host(host.name, own); });
  return hosts;
}

}  // namespace recmill::server
