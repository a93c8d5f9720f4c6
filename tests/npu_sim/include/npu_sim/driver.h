/*
 * What the simulator's own libraries and its tests ask of libascend_hal.so beside CANN's names. The prefix says that no
 * real driver has these.
 */
#ifndef NPU_SIM_DRIVER_H
#define NPU_SIM_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define NPU_SIM_EXPORT __attribute__((visibility("default")))

/* Calls ------------------------------------------------------------------------------------------------------------ */

/* One function of CANN as this process calls it. Counted where the real function is entered, so that a test can tell
 * which layers a call went through; NPU_SIM_FAIL ("name:nth:code,...", nth 0 for all) makes it fail with the code,
 * NPU_SIM_DELAY ("name:microseconds,...") makes it slow. */
struct npu_sim_call {
    const char *name;
    _Atomic uint64_t count;
    _Atomic int armed; /* 0 not looked up, 1 plain, 2 with knobs */
    struct npu_sim_call *next;
};

NPU_SIM_EXPORT int npu_sim_armed(struct npu_sim_call *call, uint64_t nth);
NPU_SIM_EXPORT uint64_t npu_sim_calls(const char *name);

static inline int npu_sim_enter(struct npu_sim_call *call) {
    uint64_t nth = atomic_fetch_add_explicit(&call->count, 1, memory_order_relaxed) + 1;
    return atomic_load_explicit(&call->armed, memory_order_acquire) == 1 ? 0 : npu_sim_armed(call, nth);
}

/* First line of each function of CANN: returns from it when the knobs say so. */
#define SIM_ENTER(entry)                                                                                               \
    do {                                                                                                               \
        static struct npu_sim_call call_ = {.name = #entry};                                                           \
        int code_ = npu_sim_enter(&call_);                                                                             \
        if (code_)                                                                                                     \
            return code_;                                                                                              \
    } while (0)

/* The machine ------------------------------------------------------------------------------------------------------ */

/* A number that differs for every process that uses the machine, a forked child included; 0 before it does. */
NPU_SIM_EXPORT uint64_t npu_sim_incarnation(void);

/* Begins to use the machine: 0, or DRV_NO_DEVICE. */
NPU_SIM_EXPORT int npu_sim_open(void);

struct npu_sim_machine {
    uint32_t cards;
    char chip[32];
    uint64_t kernel_ns, context_bytes, stream_bytes;
};

NPU_SIM_EXPORT int npu_sim_machine(struct npu_sim_machine *machine);

/* Gives back all memory that this process holds on a card. */
NPU_SIM_EXPORT void npu_sim_reset(uint32_t card);

/* Called when a host copy wrote to device memory: pages of freed blocks are given back to the host from then on. */
NPU_SIM_EXPORT void npu_sim_touched(void);

/* Queues ----------------------------------------------------------------------------------------------------------- */

struct npu_sim_queue;

enum npu_sim_kind { NPU_SIM_ORDER, NPU_SIM_KERNEL, NPU_SIM_RECORD, NPU_SIM_WAIT };

struct npu_sim_task {
    enum npu_sim_kind kind;
    uint64_t a, b, c; /* see struct sim_entry */
};

NPU_SIM_EXPORT int npu_sim_queue_open(uint32_t card, struct npu_sim_queue **queue);
NPU_SIM_EXPORT void npu_sim_queue_close(struct npu_sim_queue *queue);
NPU_SIM_EXPORT uint32_t npu_sim_queue_id(const struct npu_sim_queue *queue);

/* Hands in work and returns its number; blocks while the queue is full (NPU_SIM_DEPTH entries, 1024 by default). */
NPU_SIM_EXPORT uint64_t npu_sim_submit(struct npu_sim_queue *queue, const struct npu_sim_task *task);
NPU_SIM_EXPORT uint64_t npu_sim_last(struct npu_sim_queue *queue); /* number of what was handed in last */

NPU_SIM_EXPORT bool npu_sim_done(uint32_t queue_id, uint64_t seq);

/* Waits until it is done; false when timeout_ms (-1 for ever) went by. */
NPU_SIM_EXPORT bool npu_sim_wait(uint32_t queue_id, uint64_t seq, int32_t timeout_ms);

/* Events: a place where the time of a record is kept. Finite: false when there is none left. */
NPU_SIM_EXPORT bool npu_sim_event_open(uint64_t *event);
NPU_SIM_EXPORT void npu_sim_event_close(uint64_t event);
NPU_SIM_EXPORT void npu_sim_event_expect(uint64_t event, uint16_t number);
NPU_SIM_EXPORT uint64_t npu_sim_event_time(uint64_t event); /* ns; 0 while the record is not done */

#endif
