# Run at every build: writes build_info.cc when the commit has changed.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
#include "program/build_info.h"

namespace recmill::program {
std::string build_version() { return "@VERSION@"; }
std::string build_commit() { return "@commit@"; }
std::string build_type() { return "@TYPE@"; }
}  // namespace recmill::program
]] @ONLY)
