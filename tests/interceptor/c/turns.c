/* The rules of turns: on a clock of the test's own for shares, ceilings, silence and comebacks; and with threads that
 * play containers, so that ThreadSanitizer sees what processes do to each other. */
#include "turns.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "atomics.h"
#include "check.h"
#include "prim.h"

enum { STEP_US = 100, SECOND_US = 1000000, MOST = 8 };

/* A container that is always at work, in kernels of one length; it drains when the current one ends. */
struct worker {
    struct vnpu_seat seat;
    uint64_t kernel_us;
    uint64_t ends;
    uint64_t worked_us;
    bool away, dead;
    uint64_t beat_us;
};

static struct vnpu_registry registry;
static struct worker workers[MOST];
static uint32_t worker_count;
static uint64_t now;

static void begin(void) {
    memset(&registry, 0, sizeof registry);
    memset(workers, 0, sizeof workers);
    worker_count = 0;
    now = SECOND_US;
}

static struct worker *enter(uint32_t weight, uint32_t flags, uint64_t kernel_us) {
    uint32_t index = worker_count++;

    registry.tenants[index].key = index + 1;
    registry.tenants[index].weight = weight;
    registry.tenants[index].flags = flags;
    workers[index] = (struct worker){.seat = {.registry = &registry, .tenant = index}, .kernel_us = kernel_us};
    return &workers[index];
}

static void work(struct worker *worker) {
    uint64_t turn = registry.turn;

    if (worker->ends <= now && vnpu_gate_open(turn, worker->seat.tenant) && !worker->away)
        worker->ends = now + worker->kernel_us;
    if (worker->ends > now)
        worker->worked_us += STEP_US;
    else if (vnpu_gate_open(turn, worker->seat.tenant) && vnpu_others_want(&worker->seat))
        vnpu_close(&worker->seat, turn);
    else if (vnpu_holder(turn) == worker->seat.tenant && (turn & VNPU_TURN_CLOSING) != 0)
        vnpu_pass(&worker->seat, turn, now);
    if (worker->ends > now && now - worker->beat_us >= VNPU_BEAT_US) {
        vnpu_beat(&worker->seat);
        worker->beat_us = now;
    }
}

static void run(uint64_t microseconds) {
    for (uint64_t end = now + microseconds; now < end; now += STEP_US)
        for (uint32_t index = 0; index < worker_count; index++) {
            struct worker *worker = &workers[index];

            if (worker->dead)
                continue;
            if (worker->away)
                vnpu_want_no_more(&worker->seat);
            else
                vnpu_want(&worker->seat, now);
            work(worker);
            vnpu_tend(&worker->seat, now);
        }
}

static double share(const struct worker *worker, uint64_t before, uint64_t over_us) {
    return 100.0 * (double)(worker->worked_us - before) / (double)over_us;
}

static void check_shares(const uint32_t *weights, const uint64_t *kernels, uint32_t count) {
    double sum = 0;

    begin();
    for (uint32_t index = 0; index < count; index++)
        sum += enter(weights[index], 0, kernels[index])->seat.registry != NULL ? weights[index] : 0;
    run(10 * (uint64_t)SECOND_US);
    for (uint32_t index = 0; index < count; index++) {
        double error = share(&workers[index], 0, 10 * (uint64_t)SECOND_US) - 100 * weights[index] / sum;

        CHECK(error < 2 && error > -2);
    }
}

static void shares(void) {
    check_shares((uint32_t[]){20, 40}, (uint64_t[]){1000, 1000}, 2);
    check_shares((uint32_t[]){10, 90}, (uint64_t[]){1000, 1000}, 2);
    check_shares((uint32_t[]){50, 50}, (uint64_t[]){100, 20000}, 2);
    check_shares((uint32_t[]){50, 50}, (uint64_t[]){100, 200000}, 2);
    check_shares((uint32_t[]){10, 90}, (uint64_t[]){20000, 100}, 2);
    check_shares((uint32_t[]){25, 25, 25, 25}, (uint64_t[]){1000, 100, 5000, 20000}, 4);
    check_shares((uint32_t[]){1, 99}, (uint64_t[]){1000, 1000}, 2);
}

static void weights_without_priority(void) {
    begin();
    enter(60, 0, 1000);
    enter(0, 0, 1000);
    CHECK(vnpu_weight(&registry, 1) == 40);
    enter(0, 0, 1000);
    CHECK(vnpu_weight(&registry, 1) == 20 && vnpu_weight(&registry, 2) == 20);
    enter(40, 0, 1000);
    CHECK(vnpu_weight(&registry, 1) == 1);
    registry.tenants[0].weight = UINT32_MAX;
    CHECK(vnpu_weight(&registry, 0) == 100);
}

/* Who was away for long neither owes nor is owed: the first second after it is back is shared as every other. */
static void comeback(void) {
    begin();
    struct worker *stays = enter(50, 0, 1000);
    struct worker *leaves = enter(50, 0, 1000);

    run(2 * SECOND_US);
    leaves->away = true;
    uint64_t before = stays->worked_us;
    run(4 * SECOND_US);
    CHECK(share(stays, before, 4 * SECOND_US) > 97);
    leaves->away = false;
    before = leaves->worked_us;
    run(SECOND_US);
    CHECK(share(leaves, before, SECOND_US) > 40 && share(leaves, before, SECOND_US) < 60);
}

static void ceiling(void) {
    begin();
    struct worker *held = enter(20, VNPU_CEILING, 1000);

    run(10 * SECOND_US);
    CHECK(share(held, 0, 10 * SECOND_US) > 19 && share(held, 0, 10 * SECOND_US) < 21);
    struct worker *other = enter(40, VNPU_CEILING, 1000);
    uint64_t before = held->worked_us;
    run(10 * SECOND_US);
    CHECK(share(held, before, 10 * SECOND_US) > 19 && share(held, before, 10 * SECOND_US) < 21);
    CHECK(share(other, 0, 10 * SECOND_US) > 38 && share(other, 0, 10 * SECOND_US) < 41);
}

/* The holder dies 5 ms into a turn, so many microseconds of the card behind the other; how long the other waits. */
static uint64_t wait_for_the_dead(uint64_t behind_us) {
    begin();
    struct worker *dies = enter(50, 0, 1000);
    struct worker *lives = enter(50, 0, 1000);

    run(SECOND_US);
    while (vnpu_holder(registry.turn) == dies->seat.tenant)
        run(STEP_US);
    while (vnpu_holder(registry.turn) != dies->seat.tenant)
        run(STEP_US);
    registry.tenants[lives->seat.tenant].virtual_us += behind_us * 2;
    run(5000);
    dies->dead = true;
    uint64_t died = now;
    while (vnpu_holder(registry.turn) != lives->seat.tenant && now < died + SECOND_US)
        run(STEP_US);
    uint64_t waited = now - died;
    uint64_t before = lives->worked_us;
    run(SECOND_US);
    CHECK(share(lives, before, SECOND_US) > 97);
    return waited;
}

/* A holder that dies in its turn costs the others the rest of it and the silence, once. One that is so far behind that
 * it would go on gets no second turn: it shows no life. */
static void silence(void) {
    const uint64_t rest = VNPU_PERIOD_US / 2;

    CHECK(wait_for_the_dead(0) < rest + VNPU_SILENCE_US);
    CHECK(wait_for_the_dead(4 * VNPU_PERIOD_US) < rest + VNPU_SILENCE_US);
}

/* But a living one does: nothing drains between its turns. */
static void going_on(void) {
    begin();
    struct worker *behind = enter(50, 0, 1000);
    struct worker *ahead = enter(50, 0, 1000);

    run(SECOND_US);
    registry.tenants[ahead->seat.tenant].virtual_us += 10 * VNPU_PERIOD_US;
    run(VNPU_PERIOD_US);
    uint64_t before = behind->worked_us;
    run(3 * VNPU_PERIOD_US);
    CHECK(share(behind, before, 3 * VNPU_PERIOD_US) == 100);
}

/* Words that nobody of ours would write: the card is free again at once. */
static void damage(void) {
    begin();
    struct worker *worker = enter(50, 0, 1000);

    registry.turn = UINT64_MAX;
    run(SECOND_US);
    CHECK(share(worker, 0, SECOND_US) > 95);
    registry.turn = (now + 1000 * (uint64_t)SECOND_US) << VNPU_TURN_START_SHIFT | 1;
    uint64_t before = worker->worked_us;
    run(SECOND_US);
    CHECK(share(worker, before, SECOND_US) > 95);
}

/* ---- Threads as containers */

enum { THREADS = 4, TURNS = 60 };

static uint32_t inside;

static void *live(void *argument) {
    struct vnpu_seat *seat = argument;
    uint64_t deadline = vnpu_now_us() + 20 * (uint64_t)SECOND_US;

    for (int turns = 0; turns < TURNS && vnpu_now_us() < deadline;) {
        uint64_t turn = vnpu_load(&seat->registry->turn);

        vnpu_want(seat, vnpu_now_us());
        if (vnpu_gate_open(turn, seat->tenant)) {
            uint32_t nobody = 0;

            /* Between its grant and its own pass the card is this thread's alone. */
            CHECK(vnpu_swap(&inside, &nobody, seat->tenant + 1));
            sched_yield();
            vnpu_store(&inside, 0);
            turns += vnpu_close(seat, turn);
        } else if (vnpu_holder(turn) == seat->tenant) {
            vnpu_pass(seat, turn, vnpu_now_us());
        } else {
            vnpu_tend(seat, vnpu_now_us());
            sched_yield();
        }
    }
    vnpu_want_no_more(seat);
    for (uint64_t turn = vnpu_load(&seat->registry->turn); vnpu_holder(turn) == seat->tenant;
         turn = vnpu_load(&seat->registry->turn)) {
        vnpu_close(seat, turn);
        vnpu_pass(seat, turn | VNPU_TURN_CLOSING, vnpu_now_us());
    }
    return NULL;
}

static void threads(void) {
    pthread_t running[THREADS];

    begin();
    for (uint32_t index = 0; index < THREADS; index++)
        enter(25, 0, 0);
    for (uint32_t index = 0; index < THREADS; index++)
        CHECK(pthread_create(&running[index], NULL, live, &workers[index].seat) == 0);
    for (uint32_t index = 0; index < THREADS; index++)
        pthread_join(running[index], NULL);
    for (uint32_t index = 0; index < THREADS; index++)
        CHECK(registry.tenants[index].held_us > 0);
}

/* With an argument: the threads alone, since a simulated clock tells ThreadSanitizer nothing. */
int main(int count, char **arguments) {
    (void)arguments;
    if (count == 1) {
        shares();
        weights_without_priority();
        comeback();
        ceiling();
        silence();
        going_on();
        damage();
    }
    threads();
    puts("ok");
    return 0;
}
