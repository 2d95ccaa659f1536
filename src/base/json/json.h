// SPDX-License-Identifier: Apache-2.0
// JSON for those who read or write it. Headers include base/json/json_fwd.h: this one takes a
// second to compile.
#pragma once

#include <nlohmann/json.hpp>

#include "base/json/json_fwd.h"
