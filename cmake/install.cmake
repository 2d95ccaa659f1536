# `make install`: bin/recmill, the libraries and headers of every room, and find_package(Recmill). An
# installation needs nothing of the source tree, nor of its .venv.
include(CMakePackageConfigHelpers)

# Every library goes along but what only tests use. recmill_run_lookups becomes Recmill::run_lookups.
function(recmill_install_library path)
  if(path MATCHES "(^|/)testing(/|$)")
    return()
  endif()
  string(REPLACE "/" "_" name ${path})
  set_target_properties(recmill_${name} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS recmill_${name} EXPORT Recmill ARCHIVE DESTINATION lib/recmill)
endfunction()

function(recmill_install_door name)
  if(NOT name MATCHES "^(flight|gtest|torch)$") # no library that goes along links these
    set_target_properties(recmill_door_${name} PROPERTIES EXPORT_NAME door_${name})
    install(TARGETS recmill_door_${name} EXPORT Recmill)
  endif()
endfunction()

function(recmill_install_shared_library name)
  install(TARGETS ${name} LIBRARY DESTINATION lib/recmill)
endfunction()

# Copies shared libraries of a wheel, in the folder that they have below site-packages.
function(recmill_install_wheel_libraries folder)
  foreach(file IN LISTS ARGN)
    install(PROGRAMS ${RECMILL_SITE}/${folder}/${file} DESTINATION lib/recmill/${folder})
  endforeach()
endfunction()

# Called last: the program, the headers and the package's own files.
function(recmill_install_package)
  if(NOT RECMILL_TORCH OR NOT RECMILL_ARROW)
    return() # a build for a sanitizer
  endif()
  install(TARGETS recmill recmill-bench RUNTIME DESTINATION bin)
  install(DIRECTORY ${RECMILL_SRC}/ DESTINATION include/recmill FILES_MATCHING PATTERN "*.h"
          REGEX "/model/torch/" EXCLUDE PATTERN "testing" EXCLUDE PATTERN "*-inl.h" EXCLUDE PATTERN "*_contract.h" EXCLUDE)
  install(EXPORT Recmill NAMESPACE Recmill:: FILE RecmillTargets.cmake DESTINATION lib/cmake/Recmill)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/RecmillConfig.cmake.in RecmillConfig.cmake @ONLY)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/RecmillConfigVersion.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/RecmillConfig.cmake ${CMAKE_BINARY_DIR}/RecmillConfigVersion.cmake
          DESTINATION lib/cmake/Recmill)
endfunction()
