/* Makes a twin with libgpushare_ptx.so alone, in C99. */

#include <gpushare/ptx.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  gpushare_twin_options options = GPUSHARE_TWIN_OPTIONS_INIT;
  gpushare_twin_facts facts = GPUSHARE_TWIN_FACTS_INIT;
  gpushare_twin* twin = NULL;
  int good = 0;
  options.text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n";
  options.forms = GPUSHARE_TWIN_WORKERS;
  if (gpushare_twin_create(&options, &twin) != GPUSHARE_TWIN_OK) return 1;
  good = gpushare_twin_get_facts(twin, &facts) == GPUSHARE_TWIN_OK && facts.refusal[0] == 0 &&
         strcmp(facts.worker_entry, "k_gpushare_workers") == 0;
  printf("%s\n", good ? facts.worker_entry : "no twin");
  gpushare_twin_release(twin);
  return good ? 0 : 1;
}
