// Leads from the source tree's include/ to cost models of an application, which stands in
// bindings/c, the one review gate of the ABI. An installation has the header itself in this place.

#include "../../bindings/c/gpushare_cost_model.h"  // IWYU pragma: export
