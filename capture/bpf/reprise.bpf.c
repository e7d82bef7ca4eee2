/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The kernel side of `reprise capture`: every program, in one object. */
#include "context.h"
#include "cufile.h"
#include "faults.h"
#include "page_tables.h"
#include "seed.h"
#include "uring.h"

char license_text[] SEC("license") = "Dual MIT/GPL";
