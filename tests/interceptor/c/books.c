/* Threads play processes on one region: each has a ledger and a slot of its own, sworn to the kernel by the thread
 * itself.
 *
 * A counter plays the device. It must never pass the quota, whatever the threads do and whenever they end. */
#include "books.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "atomics.h"
#include "attach.h"
#include "check.h"
#include "slots.h"

enum { THREADS = 8, QUOTA = 1000, ROUNDS = 4000, GENERATIONS = 3 };

static struct vnpu_region *region;
static pthread_barrier_t start;
static uint64_t device;
static unsigned int refused;

struct process {
    pthread_t thread;
    struct vnpu_ledger ledger;
    struct vnpu_vow vow;
    unsigned int seed;
};

static void join_region(struct process *process) {
    int slot = vnpu_slot_claim(region, &process->vow);

    CHECK(slot >= 0);
    process->ledger.region = region;
    process->ledger.slot = (uint32_t)slot;
    pthread_mutex_init(&process->ledger.asking[0], NULL);
    pthread_barrier_wait(&start);
}

static bool take(struct process *process, uint64_t pages) {
    if (!vnpu_reserve(&process->ledger, 0, pages))
        return false;
    CHECK(vnpu_add(&device, pages) + pages <= QUOTA);
    return true;
}

static void give(struct process *process, uint64_t pages) {
    vnpu_add(&device, -pages);
    vnpu_release(&process->ledger, 0, pages);
}

/* Asks for more than there is, together with the others: somebody is refused, nobody gets too much. */
static void *greedy(void *argument) {
    struct process *process = argument;

    join_region(process);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t pages = 1 + (uint64_t)(rand_r(&process->seed) % (QUOTA * 2 / 3));

        if (!take(process, pages)) {
            vnpu_add_relaxed(&refused, 1);
            continue;
        }
        sched_yield();
        give(process, pages);
    }
    return NULL;
}

/* Asks for its even part: the quota suffices at every moment, so a refusal would be a lie. */
static void *modest(void *argument) {
    struct process *process = argument;

    join_region(process);
    for (int round = 0; round < ROUNDS; round++) {
        CHECK(take(process, QUOTA / THREADS));
        give(process, QUOTA / THREADS);
    }
    return NULL;
}

/* Ends while it holds memory. The device frees it, and so do the books, before anyone is refused because of it. */
static void *mortal(void *argument) {
    struct process *process = argument;

    join_region(process);
    CHECK(take(process, QUOTA));
    vnpu_add(&device, -(uint64_t)QUOTA);
    return NULL;
}

static void run(void *(*life)(void *), int count) {
    static struct process processes[THREADS];

    pthread_barrier_init(&start, NULL, (unsigned int)count);
    for (int index = 0; index < count; index++) {
        memset(&processes[index], 0, sizeof processes[index]);
        processes[index].seed = (unsigned int)index + 1;
        CHECK(pthread_create(&processes[index].thread, NULL, life, &processes[index]) == 0);
    }
    for (int index = 0; index < count; index++)
        pthread_join(processes[index].thread, NULL);
    pthread_barrier_destroy(&start);
    vnpu_slots_sweep(region);
    CHECK(device == 0);
    CHECK(vnpu_holdings(region, 0).held == 0);
}

int main(void) {
    region = mmap(NULL, vnpu_region_size(1), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(region != MAP_FAILED);
    region->card_count = 1;
    region->generation = 1;
    region->cards[0].quota_pages = QUOTA;
    run(greedy, THREADS);
    CHECK(refused > 0);
    run(modest, THREADS);
    for (int generation = 0; generation < GENERATIONS; generation++)
        run(mortal, 1);
    CHECK(region->slots_used <= THREADS);
    puts("ok");
    return 0;
}
