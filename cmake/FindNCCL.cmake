# SPDX-License-Identifier: Apache-2.0
# Finds the header of NCCL, beside CUDA's or elsewhere: NCCL_FOUND, NCCL_VERSION and the target NCCL::headers. The library
# itself is opened at run time, so that a program starts where it is absent.
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV NCCL_HOME PATH_SUFFIXES include)
if(NCCL_INCLUDE_DIR)
    file(STRINGS "${NCCL_INCLUDE_DIR}/nccl.h" lines REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
    string(REGEX REPLACE "[^0-9;]" "" NCCL_VERSION "${lines}")
    string(REPLACE ";" "." NCCL_VERSION "${NCCL_VERSION}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
if(NCCL_FOUND AND NOT TARGET NCCL::headers)
    add_library(NCCL::headers INTERFACE IMPORTED)
    target_include_directories(NCCL::headers INTERFACE "${NCCL_INCLUDE_DIR}")
endif()
