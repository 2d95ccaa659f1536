# Run at every build: writes torch_build.cc when something has changed in which a program and its librecmill_torch.so
# have to be alike, and torch_version.
file(GLOB_RECURSE headers ${SOURCE}/src/base/*.h ${SOURCE}/src/schema/*.h ${SOURCE}/src/batch/*.h
     ${SOURCE}/src/device/*.h ${SOURCE}/src/model/*.h)
foreach(header IN LISTS headers)
  file(SHA256 ${header} hash)
  string(APPEND hashes " ${hash}")
endforeach()
file(STRINGS ${TORCH}/headeronly/version.h lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "#define [A-Z_]+ " "" numbers "${lines}")
list(JOIN numbers "." version)
string(SHA256 build "${COMPILED_BY} ${version}${hashes}")
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
#include "model/torch_build.h"

namespace recmill::model {
const char* torch_build() { return "@build@"; }
const char* torch_version() { return "@version@"; }
}  // namespace recmill::model
]] @ONLY)
