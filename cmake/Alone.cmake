# Unity builds (the presets) compile a dozen sources of a library as one, in a third of the time. The sources in
# cmake/alone.txt are compiled alone: their unnamed namespaces repeat a name of another source of the library.
# SPDX-License-Identifier: MIT
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/alone.txt)
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/alone.txt sources REGEX "^[a-z]")
foreach(source ${sources})
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${source})
    message(FATAL_ERROR "cmake/alone.txt: there is no ${source}")
  endif()
  set(folder ${PROJECT_SOURCE_DIR})
  if(source MATCHES "^(cli|tests)/")
    set(folder ${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_1})
    if(CMAKE_MATCH_1 STREQUAL "tests" AND NOT REPRISE_TESTS)
      continue()
    endif()
  endif()
  set_source_files_properties(${PROJECT_SOURCE_DIR}/${source} DIRECTORY ${folder}
    PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endforeach()
