// The fit to library calls in the learned text.
//
// An array of classes. The rows of a class are one text, because a profile has hundreds:
// "value,flags,batch,m,n,k;" of a product, else "value,flags,batch,channels,height,width,filters,
// filter_height,filter_width,padding,stride,dilation,groups;". value is log2 x 1000; flags are the
// type, + 4 channels last, + 8 and + 16 transposed, + 32 x mode. Strict and bounded as
// json_fields.h is. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_LEARNED_JSON_LIBRARY_H_
#define GPUSHARE_SRC_MODELS_LEARNED_JSON_LIBRARY_H_

#include "absl/status/status.h"
#include "src/models/json/json_fields.h"
#include "src/models/library/library_state.h"

namespace gpushare::models {

absl::Status ReadLibrary(const JsonValue& value, const JsonPath& path, LibraryState& out);
void WriteLibrary(const LibraryState& in, JsonWriter& json);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_LEARNED_JSON_LIBRARY_H_
