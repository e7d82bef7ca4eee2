# What HTML pages carry: Debian's Chart.js, and the script and style of analyze/report, as bytes of the program.
# SPDX-License-Identifier: MIT
find_file(REPRISE_CHART_LIBRARY chart.min.js
  PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist NO_DEFAULT_PATH
  DOC "Chart.js 3, minified (Debian: libjs-chart.js)")
if(NOT REPRISE_CHART_LIBRARY)
  message(FATAL_ERROR "Chart.js 3 is missing (Debian: libjs-chart.js; or set REPRISE_CHART_LIBRARY to its chart.min.js)")
endif()
mark_as_advanced(REPRISE_CHART_LIBRARY)

set(page_folder ${PROJECT_SOURCE_DIR}/analyze/report)
# Its symbols are made by the assembler, which link-time optimization does not see.
set_property(SOURCE ${page_folder}/assets.cpp APPEND PROPERTY COMPILE_OPTIONS -fno-lto)
set_source_files_properties(${page_folder}/assets.cpp PROPERTIES
  OBJECT_DEPENDS "${REPRISE_CHART_LIBRARY};${page_folder}/page.js;${page_folder}/page.css"
  COMPILE_DEFINITIONS "REPRISE_CHART_LIBRARY=\"${REPRISE_CHART_LIBRARY}\";REPRISE_PAGE_SCRIPT=\"${page_folder}/page.js\";REPRISE_PAGE_STYLE=\"${page_folder}/page.css\"")
