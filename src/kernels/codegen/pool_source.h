// SPDX-License-Identifier: Apache-2.0
// From chosen schedules to the source of a fused kernel (RecFlex, section IV-B). Pure: the same
// schedules give the same text, whatever the machine.
//
// Each distinct pair of a schedule and what is constant of a feature becomes one function, shared
// by all features of that pair; a task's pieces go to theirs by branches, which the compiler fills
// with the functions themselves, or by a table of pointers to them. Arguments of features come by
// an array of pointers. Scratch of all schedules lies in one union.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/codegen/dispatch.h"
#include "kernels/codegen/pool_function.h"
#include "kernels/embedding_pool/pool_template.h"

namespace recmill::kernels::codegen {

struct PoolSourceOptions {
  std::string made_by;  // program and workload, for the reader of the source
  Dispatch dispatch = Dispatch::branches;
  int64_t lanes = 16;            // floats of the widest vector: 16, 8 or 4
  int64_t most_functions = 100;  // of one source
  bool numbered = false;         // entries end in _0, _1 ...: the sources become one library
};

/// One kernel: a translation unit with the entry `recmill_run`.
struct PoolSource {
  std::string text;
  std::string entry;
  std::vector<PoolFunction> functions;  // Feature::schedule is the place in here
};

/// Whether templates of this name have a generated form; others are called by pointer.
bool has_generated_form(const std::string& template_name);

/// Kernels of at most `most_functions` functions, those of like schedules together. `wanted` may
/// repeat itself.
std::vector<PoolSource> pool_sources(std::span<const PoolFunction> wanted,
                                     const PoolSourceOptions& options);

}  // namespace recmill::kernels::codegen
