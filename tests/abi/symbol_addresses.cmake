# Writes a C program that takes the address of every symbol of a list, through its declaration:
#   cmake -DSYMBOLS=symbols.txt -DOUTPUT=symbol_addresses.c -P symbol_addresses.cmake

file(STRINGS "${SYMBOLS}" symbols)
set(entries "")
foreach(symbol IN LISTS symbols)
  string(APPEND entries "    (function)${symbol},\n")
endforeach()
file(WRITE "${OUTPUT}" "/* Made by the build from symbols.txt; do not edit. */
#include <gpushare/gpushare.h>
#include <gpushare/gpushare_cost_model.h>
#include <gpushare/gpushare_policy.h>
#include <stdio.h>

typedef void (*function)(void);
static const function addresses[] = {
${entries}};

int main(void) {
  size_t count = sizeof(addresses) / sizeof(addresses[0]);
  for (size_t i = 0; i < count; ++i) {
    if (addresses[i] == NULL) return 1;
  }
  printf(\"%zu symbols have an address.\\n\", count);
  return 0;
}
")
