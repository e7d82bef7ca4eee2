# The kernel side of the recorder: BPF objects made by clang and carried inside the binary.
# Sets REPRISE_CAPTURE_BUILT.
# SPDX-License-Identifier: MIT
set(REPRISE_CAPTURE_BUILT OFF)
if(NOT REPRISE_CAPTURE STREQUAL "OFF")
  find_program(BPF_CLANG NAMES clang clang-14 clang-15 clang-16 clang-17 clang-18 clang-19)
  mark_as_advanced(BPF_CLANG)
  pkg_check_modules(libbpf QUIET IMPORTED_TARGET libbpf>=1.0)
  if(BPF_CLANG AND libbpf_FOUND AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    set(REPRISE_CAPTURE_BUILT ON)
  elseif(REPRISE_CAPTURE STREQUAL "ON")
    message(FATAL_ERROR "REPRISE_CAPTURE is ON, but libbpf-dev or clang is missing, or this is not x86-64")
  else()
    message(STATUS "libbpf-dev or clang is missing: `reprise capture` will only say so")
  endif()
endif()

# add_bpf_object(TARGET FOLDER): compiles FOLDER/reprise.bpf.c, twice (capture/bpf/common.h), and embeds both in TARGET.
function(add_bpf_object target folder)
  set(object ${PROJECT_BINARY_DIR}/generated/reprise.bpf.o)
  set(raw_object ${PROJECT_BINARY_DIR}/generated/reprise_raw.bpf.o)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated)
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.h)
  get_target_property(libbpf_includes PkgConfig::libbpf INTERFACE_INCLUDE_DIRECTORIES)
  set(flags)
  foreach(path ${libbpf_includes})
    list(APPEND flags -I${path})
  endforeach()
  set(compile ${BPF_CLANG} -target bpf -mcpu=v3 -g -O2 -D__TARGET_ARCH_x86 -Wall -Wextra -Werror -Wno-unused-parameter
      -Wno-pass-failed -fdebug-prefix-map=${PROJECT_SOURCE_DIR}=. -I${PROJECT_SOURCE_DIR} ${flags}
      -c ${PROJECT_SOURCE_DIR}/${folder}/reprise.bpf.c)
  add_custom_command(
    OUTPUT ${object} ${raw_object}
    COMMAND ${compile} -o ${object}
    COMMAND ${compile} -DREPRISE_RAW_TRACEPOINTS -o ${raw_object}
    DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/reprise.bpf.c ${headers} ${PROJECT_SOURCE_DIR}/formats/raw/record.h
    VERBATIM)
  # Its symbols are made by the assembler, which link-time optimization does not see.
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/capture/bpf_object.cpp APPEND PROPERTY COMPILE_OPTIONS -fno-lto)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/capture/bpf_object.cpp PROPERTIES
    OBJECT_DEPENDS "${object};${raw_object}"
    COMPILE_DEFINITIONS "REPRISE_BPF_OBJECT=\"${object}\";REPRISE_RAW_BPF_OBJECT=\"${raw_object}\"")
endfunction()
