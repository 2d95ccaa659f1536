// SPDX-License-Identifier: Apache-2.0
// A tuning record as a page with pictures.
#pragma once

#include <span>
#include <string>

#include "kernels/tune/record.h"
#include "schema/table_spec.h"

namespace recmill::cli {

/// One self-contained HTML page without scripts, for light and dark screens. For each family: what
/// was chosen and measured; every class by dimension and lookups (RecFlex, figure 2); its share of
/// the time; and a table of all classes with their statistics, schedule, predicted and measured
/// time, and share of the memory limit, the time that the class's bytes take at the rate that all
/// threads read memory with. Classes keep it small, whatever the number of features. A function of
/// its arguments: the same record, the same bytes. `model` is the one that the record is of.
std::string tuning_page(const kernels::tune::TuningRecord& record, const ModelSpec& model);

}  // namespace recmill::cli
