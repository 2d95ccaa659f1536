// SPDX-License-Identifier: Apache-2.0
// The functions and constants of the C interface of HiGHS 1.15 that solve.cc uses; its wheel brings
// the library without a header. A HighsInt is 32 bits there (solve_test asks the library).
#pragma once

#include <cstdint>

extern "C" {

using HighsInt = int32_t;

struct HighsCallbackDataOut;  // read by Highs_getCallbackDataOutItem()
struct HighsCallbackDataIn {  // only its first member: it is always made by HiGHS
  int user_interrupt;
};
using HighsCallback = void (*)(int type, const char* message, const HighsCallbackDataOut* out,
                               HighsCallbackDataIn* in, void* data);

HighsInt Highs_getSizeofHighsInt(const void* highs);
void* Highs_create();
void Highs_destroy(void* highs);

HighsInt Highs_setBoolOptionValue(void* highs, const char* option, HighsInt value);
HighsInt Highs_setIntOptionValue(void* highs, const char* option, HighsInt value);
HighsInt Highs_setDoubleOptionValue(void* highs, const char* option, double value);
HighsInt Highs_setStringOptionValue(void* highs, const char* option, const char* value);

HighsInt Highs_passMip(void* highs, HighsInt columns, HighsInt rows, HighsInt entries,
                       HighsInt matrix_format, HighsInt sense, double offset, const double* cost,
                       const double* column_lower, const double* column_upper,
                       const double* row_lower, const double* row_upper, const HighsInt* row_start,
                       const HighsInt* entry_column, const double* entry_value,
                       const HighsInt* integrality);
HighsInt Highs_setSolution(void* highs, const double* column_value, const double* row_value,
                           const double* column_dual, const double* row_dual);

HighsInt Highs_setCallback(void* highs, HighsCallback callback, void* data);
HighsInt Highs_startCallback(void* highs, int type);
const void* Highs_getCallbackDataOutItem(const HighsCallbackDataOut* out, const char* item);

HighsInt Highs_run(void* highs);
HighsInt Highs_getModelStatus(const void* highs);
HighsInt Highs_getSolution(const void* highs, double* column_value, double* column_dual,
                           double* row_value, double* row_dual);
HighsInt Highs_getIntInfoValue(const void* highs, const char* info, HighsInt* value);
HighsInt Highs_getInt64InfoValue(const void* highs, const char* info, int64_t* value);
HighsInt Highs_getDoubleInfoValue(const void* highs, const char* info, double* value);

}  // extern "C"

namespace recmill::solve {

// What a call returns.
inline constexpr HighsInt kHighsOk = 0, kHighsError = -1;

inline constexpr HighsInt kHighsRowWise = 2;
inline constexpr HighsInt kHighsMinimize = 1;
inline constexpr HighsInt kHighsContinuous = 0, kHighsInteger = 1;
inline constexpr int kHighsMipInterrupt = 6;   // a callback
inline constexpr HighsInt kHighsFeasible = 2;  // of primal_solution_status

// Of Highs_getModelStatus().
inline constexpr HighsInt kHighsOptimal = 7;
inline constexpr HighsInt kHighsInfeasible = 8;
inline constexpr HighsInt kHighsUnboundedOrInfeasible = 9;
inline constexpr HighsInt kHighsUnbounded = 10;
inline constexpr HighsInt kHighsTimeLimit = 13;
inline constexpr HighsInt kHighsIterationLimit = 14;
inline constexpr HighsInt kHighsSolutionLimit = 16;  // of nodes, too
inline constexpr HighsInt kHighsInterrupt = 17;

}  // namespace recmill::solve
