// SPDX-License-Identifier: Apache-2.0
#include "base/json/json.h"

#include <utility>

namespace recmill {

JsonObject::JsonObject() : JsonObject(Json::object()) {}

JsonObject::JsonObject(Json object) : object_(std::make_unique<Json>(std::move(object))) {}

JsonObject::JsonObject(const JsonObject& other) : JsonObject(*other) {}

JsonObject::JsonObject(JsonObject&& other) noexcept = default;

JsonObject& JsonObject::operator=(JsonObject other) noexcept {
  object_ = std::move(other.object_);
  return *this;
}

JsonObject::~JsonObject() = default;

bool JsonObject::operator==(const JsonObject& other) const {
  return *object_ == *other.object_;
}

}  // namespace recmill
