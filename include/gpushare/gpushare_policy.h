// Leads from the source tree's include/ to policies of an application, which stands in bindings/c,
// the one review gate of the ABI. An installation has the header itself in this place.

#include "../../bindings/c/gpushare_policy.h"  // IWYU pragma: export
