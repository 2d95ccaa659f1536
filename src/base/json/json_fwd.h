// SPDX-License-Identifier: Apache-2.0
// JSON for headers, which name it but need not know what it is: base/json/json.h has the rest.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

namespace recmill {

/// Keys keep the order in which they were written, so that output is the same bytes every time.
using Json = nlohmann::ordered_json;

/// A JSON object as a member; {} at first. One that was moved from can be assigned to, no more.
class JsonObject {
 public:
  JsonObject();
  JsonObject(Json object);
  JsonObject(const JsonObject& other);
  JsonObject(JsonObject&& other) noexcept;
  JsonObject& operator=(JsonObject other) noexcept;
  ~JsonObject();

  Json& operator*() { return *object_; }
  const Json& operator*() const { return *object_; }
  Json* operator->() { return object_.get(); }
  const Json* operator->() const { return object_.get(); }
  bool operator==(const JsonObject& other) const;

 private:
  std::unique_ptr<Json> object_;
};

}  // namespace recmill
