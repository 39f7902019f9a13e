// Leads from the source tree's include/ to the C API, which stands in bindings/c, the one review
// gate of the ABI. An installation has the header itself in this place.

#include "../../bindings/c/gpushare.h"  // IWYU pragma: export
