// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/registry.h"

#include "base/json/json.h"

namespace recmill::preprocess {

#define RECMILL_OP(name) Result<std::unique_ptr<Op>> make_##name(const Json& parameters);
#include "generated/preprocess_ops.inc"
#undef RECMILL_OP

namespace {

struct Entry {
  const char* name;
  Result<std::unique_ptr<Op>> (*make)(const Json& parameters);
};
#define RECMILL_OP(name) {#name, make_##name},
constexpr Entry kOps[] = {
#include "generated/preprocess_ops.inc"
};
#undef RECMILL_OP

}  // namespace

Result<std::unique_ptr<Op>> make_op(const OpSpec& spec) {
  for (const Entry& entry : kOps) {
    if (spec.op != entry.name) continue;
    auto op = entry.make(*spec.parameters);
    if (!op.ok()) return op.status().at("op '" + spec.op + "'");
    return op;
  }
  return Status::Failed("there is no op '" + spec.op + "'");
}

const std::vector<std::string>& op_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Entry& entry : kOps) list.emplace_back(entry.name);
    return list;
  }();
  return names;
}

}  // namespace recmill::preprocess
