// SPDX-License-Identifier: Apache-2.0
// What a run's checkpoints hold, by name, type and shape (docs/formats/checkpoint.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json/json_fwd.h"
#include "checkpoint/format.h"
#include "model/model.h"
#include "run/resolved_run.h"
#include "schema/table_spec.h"
#include "step/loop_state.h"
#include "table/optimizers/row_state.h"

namespace recmill::train {

checkpoint::EntrySpec weight_entry(const TableSpec& table);
checkpoint::EntrySpec state_entry(const TableSpec& table, const table::StateColumn& column);
/// What makes rows that nobody has changed, as table::InitialRows does.
checkpoint::RowRule weight_rule(const TableSpec& table, uint64_t seed);
checkpoint::RowRule state_rule(const table::StateColumn& column);
/// A parameter, or a column of its optimizer's state.
checkpoint::EntrySpec layer_entry(const std::string& name, const model::ParameterSpec& parameter);

/// Float32 values that came from 16-bit ones, exactly, back as their bits; and the way there.
std::vector<uint16_t> narrow(std::span<const float> values, RowPrecision precision);
void widen(std::span<const uint16_t> bits, RowPrecision precision, std::span<float> values);

Json properties_of(const ResolvedRun& run, const LoopState& state);

}  // namespace recmill::train
