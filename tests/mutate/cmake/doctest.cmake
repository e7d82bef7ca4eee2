# Found before doctest's own module: mutate.py runs the test programs itself, so nothing is listed after each link.
# SPDX-License-Identifier: MIT
function(doctest_discover_tests)
endfunction()
