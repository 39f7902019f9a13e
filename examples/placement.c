/* Which GPU gets which apps, asked while a service runs (docs/placement.md): places a cluster, then
   again when the service needs one replica more, from what runs and with at most one move. It needs
   no GPU and no runtime: a router or an orchestrator links the library and carries the answer out.

     describe GPUs, apps and pairs -> gpushare_place -> start what has a GPU -> on a change, place
     again: the array of the last answer says what runs, and takes the next one */
#include <gpushare/gpushare.h>
#include <stdio.h>
#include <stdlib.h>

#define GB INT64_C(1000000000)
enum { REPLICAS = 3, INSTANCES = 4 }; /* the most that this program places */

static void check(gpushare_status status) {
  if (status == GPUSHARE_OK) return;
  fprintf(stderr, "%s: %s\n", gpushare_status_name(status), gpushare_last_error_message());
  exit(1);
}

/* What was measured: `gpushare colocate` gives the p99 over alone and the BE rate of a row. */
static gpushare_place_pair measured(const char* be, double load, double p99_ratio, double be_rate) {
  gpushare_place_pair pair = GPUSHARE_PLACE_PAIR_INIT;
  pair.lc = "decode";
  pair.be = be;
  pair.load = load;
  pair.p99_ratio = p99_ratio;
  pair.p99_error = 0.005;
  pair.be_rate = be_rate;
  pair.be_error = 0.02;
  return pair;
}

static gpushare_place_be job(const char* name, const char* kind, int64_t memory_bytes) {
  gpushare_place_be be = GPUSHARE_PLACE_BE_INIT;
  be.name = name;
  be.kind = kind;
  be.memory_bytes = memory_bytes;
  be.instances = INSTANCES / 2;
  return be;
}

static void print_slots(const char* name, const int32_t* gpus, int count) {
  printf("%s on GPU", name);
  for (int i = 0; i < count; ++i) printf(" %d", (int)gpus[i]);
  printf("\n");
}

/* Places the service's replicas and two jobs. `slots` says what runs, and has the answer after. */
static void place(gpushare_place_lc chat, int32_t* slots) {
  gpushare_place_gpu gpus = GPUSHARE_PLACE_GPU_INIT;
  gpus.name = "h200";
  gpus.count = 4;
  gpus.memory_bytes = 140 * GB;
  const gpushare_place_be jobs[] = {job("tune", "lora", 40 * GB), job("index", "embed", 8 * GB)};
  const gpushare_place_pair pairs[] = {measured("lora", 0.3, 1.006, 0.68),
                                       measured("lora", 0.6, 1.010, 0.39),
                                       measured("embed", 0.6, 1.090, 0.52)};
  gpushare_place_options options = GPUSHARE_PLACE_OPTIONS_INIT;
  options.be_per_gpu = 2;
  options.moves_max = 1;
  gpushare_place_result result = GPUSHARE_PLACE_RESULT_INIT;
  check(gpushare_place(&options, &gpus, 1, &chat, 1, jobs, 2, pairs, 3, slots, slots,
                       (size_t)chat.replicas + INSTANCES, &result));
  print_slots("chat", slots, chat.replicas);
  print_slots("tune", slots + chat.replicas, INSTANCES / 2);
  print_slots("index", slots + chat.replicas + INSTANCES / 2, INSTANCES / 2);
  printf("%d of %d jobs have a GPU, %d moved; BE rate %.2f, value %.2f of at most %.2f\n",
         (int)result.be_placed, INSTANCES, (int)result.moved, result.be_rate, result.value,
         result.upper_bound);
}

int main(void) {
  int32_t slots[REPLICAS + INSTANCES];
  for (int i = 0; i < REPLICAS + INSTANCES; ++i) slots[i] = GPUSHARE_NO_GPU;
  gpushare_place_lc chat = GPUSHARE_PLACE_LC_INIT;
  chat.name = "chat";
  chat.kind = "decode";
  chat.load = 0.45;
  chat.memory_bytes = 60 * GB;
  chat.p99_bound = 1.05;
  chat.replicas = REPLICAS - 1;
  place(chat, slots);

  /* One replica more: its entry stands behind those of the others. */
  for (int i = REPLICAS + INSTANCES - 1; i >= REPLICAS; --i) slots[i] = slots[i - 1];
  slots[REPLICAS - 1] = GPUSHARE_NO_GPU;
  chat.replicas = REPLICAS;
  printf("One replica more:\n");
  place(chat, slots);
  return 0;
}
