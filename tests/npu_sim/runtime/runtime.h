/* What the parts of the runtime share. */
#ifndef NPU_SIM_RUNTIME_H
#define NPU_SIM_RUNTIME_H

#include "cann/codes.h"
#include "cann/hal.h"
#include "cann/rt.h"
#include "npu_sim/driver.h"

#include <pthread.h>
#include <stdbool.h>

#define RT_API __attribute__((visibility("default")))

/* A function that the driver lacks is a feature that the runtime lacks. */
#define RT_NEED(function)                                                                                              \
    do {                                                                                                               \
        if (!(function))                                                                                               \
            return RT_FEATURE_NOT_SUPPORTED;                                                                           \
    } while (0)

/* Objects behind handles are never given back to the heap: a stale handle is told by its magic word. */
enum rt_magic { RT_DEAD = 0, RT_STREAM = 0x5351, RT_EVENT = 0x4556, RT_GRAPH = 0x4752, RT_FUNCTION = 0x464e };

struct rt_graph {
    enum rt_magic magic;
    int status;  /* enum cann_capture */
    uint64_t ns; /* all kernels: the card runs them one at a time, whatever streams they came from */
    uint64_t tasks;
    uint64_t serial; /* no two captures have the same */
    struct rt_stream *origin;
    struct rt_graph *next; /* retired */
};

struct rt_stream {
    enum rt_magic magic;
    struct rt_context *context;
    struct npu_sim_queue *queue;
    void *overhead;         /* device memory that the stream costs */
    struct rt_graph *graph; /* that it is being captured into */
    struct rt_stream *next;
};

struct rt_event {
    enum rt_magic magic;
    uint64_t cell;
    uint16_t number; /* of the last record */
    bool recorded;
    uint32_t queue_id; /* where it was recorded */
    uint64_t seq;
    struct rt_graph *graph; /* that the record was captured into */
    uint64_t serial;        /* of that capture */
    struct rt_event *next;  /* retired */
};

struct rt_context {
    uint64_t incarnation; /* of the process that made it: a forked child has no context */
    bool alive;
    bool primary;
    int32_t device; /* as the application names it */
    uint32_t card;  /* as the driver does */
    uint32_t uses;  /* of a primary context: rtSetDevice less rtDeviceReset */
    void *overhead;
    struct rt_stream *streams;
    struct rt_stream *fallback; /* the stream that NULL means */
    struct rt_context *next;
};

extern pthread_mutex_t rt_lock; /* contexts and the lists in them, captures */

/* The context of this thread, or NULL. */
struct rt_context *rt_current(void);

#define RT_NEED_CONTEXT                                                                                                \
    do {                                                                                                               \
        if (!rt_current())                                                                                             \
            return RT_CONTEXT_NULL;                                                                                    \
    } while (0)

#define RT_CURRENT(variable)                                                                                           \
    struct rt_context *variable = rt_current();                                                                        \
    if (!variable)                                                                                                     \
    return RT_CONTEXT_NULL

/* Application's device id -> index among the cards of the container -> the driver's id. */
rtError_t rt_card(int32_t device, uint32_t *card);
rtError_t rt_index(int32_t device, int32_t *index);

/* Answer of the driver, as the runtime tells it. */
rtError_t rt_error(int driver_code);

/* The stream behind a handle, NULL meaning the context's own; 0 or an error. */
rtError_t rt_stream(rtStream_t handle, struct rt_stream **stream);

rtError_t rt_stream_open(struct rt_context *context, struct rt_stream **stream);
void rt_stream_close(struct rt_stream *stream);

/* Hands in a task, or puts it into the graph that the stream is being captured into. */
void rt_submit(struct rt_stream *stream, const struct npu_sim_task *task);

/* Something was done to a stream or event that a capture does not survive. */
void rt_kill_capture(struct rt_graph *graph, uint64_t serial);
bool rt_kill_captures_of(struct rt_context *context); /* true if there was one */

/* Device memory that the runtime takes for itself. */
rtError_t rt_overhead_take(uint32_t card, uint64_t bytes, void **ptr);
void rt_overhead_give(void *ptr);

/* Memory of the current context's card: policy bits as rtMalloc has them. */
rtError_t rt_allocate(void **ptr, uint64_t size, uint32_t type, uint16_t module, uint32_t card);

/* Trims the pools of a card; true if there is one. */
bool rt_pools_trim(uint32_t card);

#endif
