# The collector that CUDA loads into a job, where CUPTI is found (CUPTI_ROOT, CUDA_HOME, the usual place of the toolkit).
# SPDX-License-Identifier: MIT
set(cupti_hints ${CUPTI_ROOT} $ENV{CUPTI_ROOT} $ENV{CUDA_HOME} $ENV{CUDA_HOME}/extras/CUPTI /usr/local/cuda
  /usr/local/cuda/extras/CUPTI)
find_path(CUPTI_INCLUDE_DIR cupti.h HINTS ${cupti_hints} PATH_SUFFIXES include)
find_path(CUPTI_CUDA_INCLUDE_DIR cuda.h HINTS ${CUPTI_INCLUDE_DIR} ${cupti_hints} PATH_SUFFIXES include)
find_library(CUPTI_LIBRARY NAMES cupti libcupti.so.13 libcupti.so.12 HINTS ${cupti_hints} PATH_SUFFIXES lib64 lib)
mark_as_advanced(CUPTI_INCLUDE_DIR CUPTI_CUDA_INCLUDE_DIR CUPTI_LIBRARY)
if(CUPTI_INCLUDE_DIR AND CUPTI_CUDA_INCLUDE_DIR AND CUPTI_LIBRARY)
  add_library(reprise_cupti MODULE capture/gpu/cupti_collector.cpp)
  set_target_properties(reprise_cupti PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} CXX_VISIBILITY_PRESET hidden
    INSTALL_RPATH_USE_LINK_PATH ON)
  target_compile_features(reprise_cupti PRIVATE cxx_std_20)
  target_include_directories(reprise_cupti PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(reprise_cupti SYSTEM PRIVATE ${CUPTI_INCLUDE_DIR} ${CUPTI_CUDA_INCLUDE_DIR})
  target_link_libraries(reprise_cupti PRIVATE reprise_options ${CUPTI_LIBRARY})
  # Not in the package: its CUPTI comes from no package of the distribution. A build of the target reprise alone has none.
  install(TARGETS reprise_cupti LIBRARY DESTINATION lib/reprise COMPONENT cupti OPTIONAL)
endif()
