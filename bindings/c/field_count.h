// How many fields an aggregate has, at compile time. A table of what was converted counts them, so
// that a new field that nobody converts is an error of the build.

#ifndef GPUSHARE_BINDINGS_C_FIELD_COUNT_H_
#define GPUSHARE_BINDINGS_C_FIELD_COUNT_H_

#include <cstddef>
#include <utility>

// Fails the build where a struct of the policy seam has got a field that a user's policy lacks.
#define GPUSHARE_ALL_FIELDS_CONVERTED(Struct, fields)                                        \
  static_assert(gpushare::abi::FieldCount<Struct>() == (fields),                             \
                #Struct " has another number of fields than " #fields                        \
                        ": a new field needs a counterpart in gpushare_policy.h and a line " \
                        "beside this count")

namespace gpushare::abi {

// Initialises a field of any type; never evaluated.
struct AnyField {
  template <class Field>
  operator Field() const;  // NOLINT(google-explicit-constructor): it must convert by itself
};

template <class Struct, class Indices>
inline constexpr bool kTakesFields = false;
template <class Struct, size_t... kIndex>
requires requires { Struct{(static_cast<void>(kIndex), AnyField{})...}; }
inline constexpr bool kTakesFields<Struct, std::index_sequence<kIndex...>> = true;

// The most values that initialise the struct. No field may be a C array: its elements would count.
template <class Struct, size_t kMost = 64>
constexpr size_t FieldCount() {
  if constexpr (kMost == 0 || kTakesFields<Struct, std::make_index_sequence<kMost>>) {
    return kMost;
  } else {
    return FieldCount<Struct, kMost - 1>();
  }
}

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_FIELD_COUNT_H_
