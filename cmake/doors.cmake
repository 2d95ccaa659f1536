# Third parties, each as one target recmill_door_NAME. Which room may link which is in rooms.cmake.
function(recmill_door name)
  add_library(recmill_door_${name} INTERFACE)
  target_link_libraries(recmill_door_${name} INTERFACE ${ARGN})
  recmill_install_door(${name})
endfunction()

# Of code whose portable target is part of the program, not only of its tests: compiled for AVX-512, AVX2
# and plain C++, nothing between.
set(RECMILL_PORTABLE_HIGHWAY "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL)")

# recmill_wheel_files(FOLDER file...): shared libraries of a wheel that programs load, FOLDER below
# site-packages. An installation has copies of them, in the same folders below lib/recmill: they find each
# other there.
function(recmill_wheel_files folder)
  recmill_install_wheel_libraries(${folder} ${ARGN})
  list(APPEND CMAKE_BUILD_RPATH ${RECMILL_SITE}/${folder})
  list(APPEND CMAKE_INSTALL_RPATH $ORIGIN/../lib/recmill/${folder})
  set(CMAKE_BUILD_RPATH ${CMAKE_BUILD_RPATH} PARENT_SCOPE)
  set(CMAKE_INSTALL_RPATH ${CMAKE_INSTALL_RPATH} PARENT_SCOPE)
endfunction()

# The same, and whoever enters by the door links them.
function(recmill_wheel_libraries door folder)
  recmill_wheel_files(${folder} ${ARGN})
  foreach(file IN LISTS ARGN)
    target_link_libraries(recmill_door_${door} INTERFACE
        $<BUILD_INTERFACE:${RECMILL_SITE}/${folder}/${file}>
        $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/lib/recmill/${folder}/${file}>)
  endforeach()
  set(CMAKE_BUILD_RPATH ${CMAKE_BUILD_RPATH} PARENT_SCOPE)
  set(CMAKE_INSTALL_RPATH ${CMAKE_INSTALL_RPATH} PARENT_SCOPE)
endfunction()

if(RECMILL_GPU_CHECK)
  include(cmake/gpu_check.cmake)
  return()
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(BZip2 REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
find_package(CLI11 REQUIRED)
find_package(dnnl REQUIRED)

recmill_door(fmt fmt::fmt)
recmill_door(json nlohmann_json::nlohmann_json)
recmill_door(highway PkgConfig::HWY)
recmill_door(highway_portable PkgConfig::HWY)
target_compile_definitions(recmill_door_highway_portable INTERFACE ${RECMILL_PORTABLE_HIGHWAY})
recmill_door(bzip2 BZip2::BZip2)
recmill_door(zlib ZLIB::ZLIB)
recmill_door(zstd PkgConfig::ZSTD)
recmill_door(cli11 CLI11::CLI11)
# No program links it: kernels/dense_layer/open_onednn.cc opens it.
recmill_door(onednn)
target_include_directories(recmill_door_onednn SYSTEM INTERFACE
    $<BUILD_INTERFACE:$<TARGET_PROPERTY:DNNL::dnnl,INTERFACE_INCLUDE_DIRECTORIES>>)
set(RECMILL_ONEDNN_LIBRARY libdnnl.so.${dnnl_VERSION_MAJOR})

find_path(TOMLPP_INCLUDE toml++/toml.h REQUIRED)
recmill_door(toml)
target_include_directories(recmill_door_toml SYSTEM INTERFACE $<BUILD_INTERFACE:${TOMLPP_INCLUDE}>)

if(RECMILL_MPI)
  set(MPI_CXX_SKIP_MPICXX TRUE) # the C interface alone, which every library has
  find_package(MPI REQUIRED COMPONENTS CXX)
  recmill_door(mpi MPI::MPI_CXX)
endif()

if(RECMILL_TESTS)
  find_package(GTest REQUIRED)
  recmill_door(gtest GTest::gtest GTest::gmock GTest::gtest_main)
  if(RECMILL_PRECOMPILED_TESTS)
    recmill_program(recmill_precompiled_gtest SOURCES ${CMAKE_SOURCE_DIR}/cmake/precompiled_gtest.cc DOORS gtest)
    recmill_compile_as_test(recmill_precompiled_gtest)
    set_target_properties(recmill_precompiled_gtest PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endif()

set(RECMILL_VENV ${CMAKE_SOURCE_DIR}/.venv CACHE PATH "the Python environment that 'make setup' made")
set(RECMILL_PYTHON ${RECMILL_VENV}/bin/python)
file(GLOB RECMILL_SITE LIST_DIRECTORIES true ${RECMILL_VENV}/lib/python3*/site-packages)

# The compiler of kernels, loaded when it is asked for (device/gpu/nvrtc.h).
recmill_wheel_files(nvidia/cu13/lib libnvrtc.so.13 libnvrtc-builtins.so.13.0)
# Messages between GPUs (comm/nccl/nccl_library.h): beside a LibTorch for GPUs.
if(EXISTS ${RECMILL_SITE}/nvidia/nccl/lib/libnccl.so.2)
  recmill_wheel_files(nvidia/nccl/lib libnccl.so.2)
endif()

if(RECMILL_ROCKSDB)
  find_package(RocksDB REQUIRED)
  recmill_door(rocksdb RocksDB::rocksdb-shared)
endif()

# The wheel has no header: solve/highs_c_api.h declares the functions that are called.
if(NOT EXISTS ${RECMILL_SITE}/highspy/libhighs.so.1)
  message(FATAL_ERROR "HiGHS is not in ${RECMILL_VENV}: run 'make setup'")
endif()
recmill_door(highs)
recmill_wheel_libraries(highs highspy libhighs.so.1)

if(RECMILL_TORCH)
  if(NOT EXISTS ${RECMILL_SITE}/torch/lib/libtorch_cpu.so)
    message(FATAL_ERROR "LibTorch is not in ${RECMILL_VENV}: run 'make setup'")
  endif()
  include(cmake/torch.cmake)
endif()

set(RECMILL_SYSTEM_ARROW OFF)
if(RECMILL_ARROW)
  find_package(Arrow QUIET)
  find_package(Parquet QUIET)
  if(Arrow_FOUND AND Parquet_FOUND)
    set(RECMILL_SYSTEM_ARROW ON)
    recmill_door(arrow Arrow::arrow_shared Parquet::parquet_shared)
    find_package(ArrowFlight REQUIRED)
    recmill_door(flight ArrowFlight::arrow_flight_shared)
  else()
    file(GLOB arrow_libraries RELATIVE ${RECMILL_SITE}/pyarrow ${RECMILL_SITE}/pyarrow/libarrow.so.*
         ${RECMILL_SITE}/pyarrow/libparquet.so.*)
    if(NOT arrow_libraries)
      message(FATAL_ERROR "Arrow C++ is neither on the system nor in ${RECMILL_VENV}: run 'make setup'")
    endif()
    recmill_door(arrow)
    recmill_wheel_libraries(arrow pyarrow ${arrow_libraries})
    target_include_directories(recmill_door_arrow SYSTEM INTERFACE
                               $<BUILD_INTERFACE:${RECMILL_SITE}/pyarrow/include>)
    file(GLOB flight_libraries RELATIVE ${RECMILL_SITE}/pyarrow ${RECMILL_SITE}/pyarrow/libarrow_flight.so.*)
    recmill_door(flight recmill_door_arrow)
    recmill_wheel_libraries(flight pyarrow ${flight_libraries})
  endif()
endif()
