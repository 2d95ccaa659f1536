# The rooms of Recmill, their layers and their doors (docs/ARCHITECTURE.md). Every library is made by
# recmill_library(), which refuses an edge that the architecture does not allow at configure time;
# tools/check_layers.py reads the #include lines for the same tables.

set(RECMILL_ROOMS
    base=0
    schema=1 device=1 solve=1 page=1
    batch=2 comm=2 placement_plan=2 lookahead_plan=2 hotset_plan=2
    reader=3 checkpoint=3 stats=3 kernels=3
    preprocess=4 table=4 placement=4 pool_op=4 hotset=4 lookahead=4
    model=5 remote=5 disk=5
    store=6
    step=7
    run=8
    train=9 score=9 server=9 config=9
    serve=10 verify=10 tuning=10 program=10
    cli=11 bench=11 python=11)

# One door for each big third party: the rooms that may link it.
set(RECMILL_DOOR_arrow reader remote/flight)
set(RECMILL_DOOR_flight remote/flight)
set(RECMILL_DOOR_rocksdb disk/rocksdb)
set(RECMILL_DOOR_torch model/torch pool_op)
set(RECMILL_DOOR_onednn kernels/dense_layer)
set(RECMILL_DOOR_mpi comm)
set(RECMILL_DOOR_nccl comm) # no target, as with cuda
set(RECMILL_DOOR_highs solve)
set(RECMILL_DOOR_xgboost preprocess/plan)
set(RECMILL_DOOR_cuda device) # no target: its libraries are loaded when they are asked for
set(RECMILL_DOOR_cli11 cli bench program)
set(RECMILL_DOOR_toml config)

foreach(entry IN LISTS RECMILL_ROOMS)
  string(REPLACE "=" ";" pair ${entry})
  list(GET pair 0 room)
  list(GET pair 1 layer)
  set(RECMILL_LAYER_${room} ${layer})
endforeach()

# kernels/dense_layer -> kernels
function(recmill_room_of path out)
  string(REGEX REPLACE "/.*" "" room ${path})
  if(NOT DEFINED RECMILL_LAYER_${room})
    message(FATAL_ERROR "'${path}' is in no room of cmake/rooms.cmake")
  endif()
  set(${out} ${room} PARENT_SCOPE)
endfunction()

function(recmill_check_edge from to)
  recmill_room_of(${from} from_room)
  recmill_room_of(${to} to_room)
  if(from_room STREQUAL to_room)
    return() # parts of one room; CMake itself refuses a cycle
  endif()
  if(NOT RECMILL_LAYER_${to_room} LESS RECMILL_LAYER_${from_room})
    message(FATAL_ERROR "layers: ${from} (layer ${RECMILL_LAYER_${from_room}}) may not link "
                        "${to} (layer ${RECMILL_LAYER_${to_room}})")
  endif()
endfunction()

function(recmill_check_door path door)
  if(NOT DEFINED RECMILL_DOOR_${door})
    return() # small third parties (fmt, nlohmann json, Highway, bzip2, zlib, zstd) are open to all
  endif()
  foreach(allowed IN LISTS RECMILL_DOOR_${door})
    if(path STREQUAL allowed OR path MATCHES "^${allowed}/")
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "doors: '${path}' may not link ${door}; its door is ${RECMILL_DOOR_${door}}")
endfunction()

# recmill_library(room/part SOURCES ... LINKS room ... DOORS third_party ...)
# makes the target recmill_room_part.
function(recmill_library path)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;DOORS" ${ARGN})
  string(REPLACE "/" "_" name ${path})
  if(ARG_SOURCES)
    add_library(recmill_${name} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(recmill_${name} PRIVATE $<BUILD_INTERFACE:recmill_warnings>)
  else()
    add_library(recmill_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(recmill_${name} ${scope} $<BUILD_INTERFACE:${RECMILL_SRC}>
                             $<INSTALL_INTERFACE:include/recmill>)
  recmill_install_library(${path})
  foreach(link IN LISTS ARG_LINKS)
    recmill_check_edge(${path} ${link})
    string(REPLACE "/" "_" link_name ${link})
    target_link_libraries(recmill_${name} ${scope} recmill_${link_name})
  endforeach()
  foreach(door IN LISTS ARG_DOORS)
    recmill_check_door(${path} ${door})
    target_link_libraries(recmill_${name} ${scope} recmill_door_${door})
  endforeach()
endfunction()

# recmill_shared_library(NAME room/part SOURCES ... LINKS room ... DOORS third_party ...)
# makes a library beside the program that it opens itself; in an installation it is in lib/recmill. It shows the functions
# alone that say so, and has copies of what it links.
# What a program and a library that it opens have to be alike in, as text: the version, the compiler and the
# headers between the two.
function(recmill_build_text out)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  set(hashes "")
  foreach(header IN LISTS ARGN)
    file(SHA256 ${header} hash)
    string(APPEND hashes " ${hash}")
  endforeach()
  string(SHA256 build "${PROJECT_VERSION} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}${hashes}")
  set(${out} ${build} PARENT_SCOPE)
endfunction()

function(recmill_shared_library name path)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;DOORS" ${ARGN})
  add_library(${name} SHARED ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${RECMILL_SRC})
  target_link_libraries(${name} PRIVATE recmill_warnings)
  foreach(link IN LISTS ARG_LINKS)
    recmill_check_edge(${path} ${link})
    string(REPLACE "/" "_" link_name ${link})
    target_link_libraries(${name} PRIVATE recmill_${link_name})
  endforeach()
  foreach(door IN LISTS ARG_DOORS)
    recmill_check_door(${path} ${door})
    target_link_libraries(${name} PRIVATE recmill_door_${door})
  endforeach()
  target_link_options(${name} PRIVATE -Wl,-z,defs -Wl,--exclude-libs,ALL)
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} INSTALL_RPATH $ORIGIN/torch/lib)
  recmill_install_shared_library(${name})
endfunction()

# recmill_embed_texts(OUT HEADER h NAMESPACE n FILES file ...): sets OUT to a source file of functions
# NAME_text(), declared in HEADER, that return the texts of the files.
function(recmill_embed_texts out)
  cmake_parse_arguments(ARG "" "HEADER;NAMESPACE" "FILES" ${ARGN})
  foreach(file IN LISTS ARG_FILES)
    get_filename_component(path ${file} ABSOLUTE)
    list(APPEND paths ${path})
  endforeach()
  list(JOIN paths "|" joined)
  set(texts ${CMAKE_CURRENT_BINARY_DIR}/embedded_texts.cc)
  add_custom_command(OUTPUT ${texts} VERBATIM
    DEPENDS ${paths} ${CMAKE_SOURCE_DIR}/cmake/write_embedded_texts.cmake
    COMMAND ${CMAKE_COMMAND} "-DFILES=${joined}" -DOUTPUT=${texts} -DHEADER=${ARG_HEADER}
            -DNAMESPACE=${ARG_NAMESPACE} -P ${CMAKE_SOURCE_DIR}/cmake/write_embedded_texts.cmake)
  set(${out} ${texts} PARENT_SCOPE)
endfunction()

# An executable, which may link any room.
function(recmill_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;DOORS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE recmill_warnings)
  foreach(link IN LISTS ARG_LINKS)
    string(REPLACE "/" "_" link_name ${link})
    target_link_libraries(${name} PRIVATE recmill_${link_name})
  endforeach()
  foreach(door IN LISTS ARG_DOORS)
    target_link_libraries(${name} PRIVATE recmill_door_${door})
  endforeach()
endfunction()

# Of tests that start processes with Open MPI 4: more than there are cores, on any of them, and by
# whoever builds in a container.
set(RECMILL_MPI_ENVIRONMENT OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)

# The tests of what GPUs run, which `make test` builds with sanitizers as well; and of what several threads
# do at once, with ThreadSanitizer.
add_custom_target(sanitized_tests)
# Those that run on a machine's own GPU too, and the benchmarks: what `make gpu-check` builds.
add_custom_target(gpu_check)

# The tests between commits: `make check`. They take under two minutes in all.
add_custom_target(check_tests)

# Why a test is slow, for tools/test_times; such a test is none of `make check`.
function(recmill_slow_test name why)
  set_property(GLOBAL APPEND_STRING PROPERTY RECMILL_SLOW_TESTS "${name}: ${why}\n")
endfunction()

# For code in which no time is spent, such as what reads words and writes pages: less time to compile.
function(recmill_compile_quickly)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
  endforeach()
endfunction()

# For many small sources that see the same large headers: so many of them at a time are compiled as one. Not for kernels.
function(recmill_compile_together count)
  set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ${RECMILL_TOGETHER} UNITY_BUILD_BATCH_SIZE ${count})
endfunction()

# GoogleTest's headers, compiled once for all tests: a second less for each source of a test. It is GCC's
# alone, whose precompiled headers this build knows to be the same in every clone.
if(RECMILL_TESTS AND NOT RECMILL_GPU_CHECK AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(RECMILL_PRECOMPILED_TESTS ON)
endif()

function(recmill_compile_as_test name)
  recmill_compile_quickly(${name}) # what they test is in libraries
  if(NOT RECMILL_PRECOMPILED_TESTS)
    return()
  endif()
  # The first lets the compiler cache know what is in it. The others: g++ 12 forgets that what it inlines from a
  # precompiled header is a system's, and sees overruns in std::string that are not there.
  target_compile_options(${name} PRIVATE -fpch-preprocess -Wno-array-bounds -Wno-stringop-overflow)
  if(name STREQUAL recmill_precompiled_gtest)
    target_precompile_headers(${name} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  else()
    target_precompile_headers(${name} REUSE_FROM recmill_precompiled_gtest)
  endif()
endfunction()

# recmill_test(name [PROGRAM] [LAUNCHER] [EMULATED] [TSAN] [GPU] SOURCES ... LINKS target-paths ... DOORS ...
#              TIMEOUT s PROCESSES n SLOW why)
# makes one GoogleTest program, one CTest entry. A test may link any room. With PROCESSES an MPI launcher
# starts so many of them; PROGRAM makes it a test of the programs, LAUNCHER one that starts them by MPI;
# EMULATED makes it one of sanitized_tests, TSAN one of those with ThreadSanitizer, GPU one of gpu_check. Its label is
# mpi, program, emulated or unit; unit tests that are not slow have the label check too, sanitized_tests the label
# sanitized.
function(recmill_test name)
  cmake_parse_arguments(ARG "EMULATED;TSAN;GPU;PROGRAM;LAUNCHER" "TIMEOUT;PROCESSES;SLOW" "SOURCES;LINKS;DOORS" ${ARGN})
  if(NOT RECMILL_TESTS)
    return()
  endif()
  recmill_program(${name} SOURCES ${ARG_SOURCES} LINKS ${ARG_LINKS} DOORS gtest ${ARG_DOORS})
  recmill_compile_as_test(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(ARG_PROCESSES)
    add_test(NAME ${name} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ARG_PROCESSES}
                                  $<TARGET_FILE:${name}>)
    set_tests_properties(${name} PROPERTIES PROCESSORS ${ARG_PROCESSES}
                         ENVIRONMENT "${RECMILL_MPI_ENVIRONMENT}")
  else()
    add_test(NAME ${name} COMMAND ${name})
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  if(RECMILL_SANITIZE)
    math(EXPR ARG_TIMEOUT "5 * ${ARG_TIMEOUT}")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
  if(ARG_EMULATED)
    set_tests_properties(${name} PROPERTIES LABELS emulated)
  elseif(ARG_PROGRAM)
    set_tests_properties(${name} PROPERTIES LABELS program)
    add_dependencies(${name} recmill recmill-bench)
    target_compile_definitions(${name} PRIVATE RECMILL_PROGRAM="$<TARGET_FILE:recmill>")
    if(ARG_LAUNCHER AND RECMILL_MPI)
      target_compile_definitions(${name} PRIVATE RECMILL_LAUNCHER="${MPIEXEC_EXECUTABLE}")
      set_tests_properties(${name} PROPERTIES LABELS "program;mpi" PROCESSORS 2
                           ENVIRONMENT "${RECMILL_MPI_ENVIRONMENT}")
    endif()
  elseif(ARG_PROCESSES)
    set_tests_properties(${name} PROPERTIES LABELS mpi)
  elseif(ARG_SLOW)
    set_tests_properties(${name} PROPERTIES LABELS unit)
  else()
    set_tests_properties(${name} PROPERTIES LABELS "unit;check")
    add_dependencies(check_tests ${name})
  endif()
  if(ARG_EMULATED OR (ARG_TSAN AND RECMILL_SANITIZE MATCHES "thread"))
    add_dependencies(sanitized_tests ${name})
    set_property(TEST ${name} APPEND PROPERTY LABELS sanitized)
  endif()
  if(ARG_SLOW)
    recmill_slow_test(${name} "${ARG_SLOW}")
  endif()
  if(ARG_GPU)
    add_dependencies(gpu_check ${name})
    set_property(GLOBAL APPEND_STRING PROPERTY RECMILL_GPU_TESTS "$<TARGET_FILE:${name}>\n")
  endif()
endfunction()

# recmill_mutation_test(name folder runner target) is, in a build with ThreadSanitizer, the test that every barrier and
# atomic of the samples in the folder is needed: the target writes them, the runner, which may be a test of them, says
# whether a changed one is right.
function(recmill_mutation_test name folder runner samples)
  if(NOT RECMILL_SANITIZE MATCHES "thread")
    return()
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME ${name}
    COMMAND ${Python3_EXECUTABLE} ${RECMILL_SRC}/kernels/codegen/testing/mutate_gpu_samples.py ${folder}
            $<TARGET_FILE:${runner}> ${CMAKE_CXX_COMPILER} -std=c++20 -O1 -fsanitize=${RECMILL_SANITIZE} -ffp-contract=off
            -fsanitize-coverage=trace-pc -I${RECMILL_SRC})
  set_tests_properties(${name} PROPERTIES LABELS "emulated;sanitized" TIMEOUT 900
    ENVIRONMENT "TSAN_OPTIONS=halt_on_error=1 exitcode=66")
  add_dependencies(sanitized_tests ${runner} ${samples})
endfunction()

# recmill_fuzz(name SOURCES ... LINKS ...) makes, of the two functions of base/testing/fuzz.h that the
# sources define, the test `name`, and with RECMILL_FUZZ the libFuzzer program fuzz/name.
function(recmill_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  set(entry ${RECMILL_SRC}/base/testing)
  recmill_test(${name} SOURCES ${ARG_SOURCES} ${entry}/fuzz_test.cc LINKS base/testing ${ARG_LINKS})
  if(RECMILL_FUZZ)
    recmill_program(${name}_libfuzzer SOURCES ${ARG_SOURCES} ${entry}/libfuzzer.cc
                    LINKS base/testing ${ARG_LINKS})
    target_link_options(${name}_libfuzzer PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name}_libfuzzer PROPERTIES OUTPUT_NAME ${name}
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    add_dependencies(fuzz ${name}_libfuzzer)
  endif()
endfunction()
