/*
 * The simulated NPU: what the file of a simulated machine holds.
 *
 * HOW IT WORKS
 *
 * All cards of one simulated machine live in one file that every process maps (NPU_SIM_STATE, default
 * /dev/shm/npu_sim). No process plays the card. Whoever looks at it (a synchronise, a query, a full queue, a tool)
 * first computes what the card has done since somebody last looked, from the times at which work was handed in: kernels
 * therefore run in real time, in the order of their streams, one at a time per card, whether or not their owner is
 * running, stopped, or asleep.
 *
 * The file is the judge of promises that must hold when processes are killed or stopped at any instruction, so its own
 * books may need neither an owner that lives nor one that runs. There is no lock in it. Everything that has to change
 * together (which kernel runs, how far each stream is, who holds how much memory) is a value in a *cell*: a version and
 * a few buffers. Who wants to change it copies the value, changes the copy, puts it into a buffer of its own and
 * publishes that with one compare-and-swap; who loses the race starts again. A process that dies or stops on the way
 * has changed nothing and blocks nobody.
 *
 * WHO WRITES WHAT
 *
 *   settings      `npu-sim set`, any time; single words
 *   processes[i]  the process that holds its robust mutex, before it publishes anything under the new generation
 *   cells         anybody, by publishing (cell.h); a buffer belongs to one process slot, two of them per slot and cell
 *   rings         entries of a stream: its owner alone, payload first, sequence number last. An entry exists when its
 *                 sequence number is the one that the schedule expects next, so left-overs of earlier owners never
 * match events        the owner sets the number of the record; whoever publishes its completion adds the time, and
 * whoever publishes next makes sure of it (effects in the schedule), so a time is never lost with a dead process
 *
 * STATES
 *
 *   process slot  free -> held (a helper thread of the process locks the mutex, generation + 1) -> dead (the kernel
 * marks the mutex when that thread ends, however it ends). A dead slot holds nothing: its memory is subtracted and its
 * streams are dropped by the next one who publishes, and readers do the same on their copy. stream        unused ->
 * open -> (dropped, while its last kernel still runs) -> unused. Its sequence numbers grow for ever; a new owner begins
 * NPU_SIM_QUEUE further on. ring entry    written -> started (kernels only) -> passed (the schedule's `next` went by)
 *   card          idle -> running one kernel until `ends`; a kernel of a group ends only once its peers run too
 *
 * MEMORY ORDER: heads of cells and sequence numbers of entries are released and acquired; the rest is relaxed words
 * that a version or a sequence number vouches for.
 */
#ifndef NPU_SIM_STATE_H
#define NPU_SIM_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define NPU_SIM_MAGIC     0x314d49535550ee4eull
#define NPU_SIM_VERSION   2u
#define NPU_SIM_CARDS     16
#define NPU_SIM_PROCESSES 512
#define NPU_SIM_STREAMS   2048
#define NPU_SIM_TAGS      64
#define NPU_SIM_QUEUE     1024
#define NPU_SIM_EVENTS    4096
#define NPU_SIM_EFFECTS   64
#define NPU_SIM_NAME      32

enum sim_arbiter {
    SIM_ARBITER_FIFO,        /* the kernel handed in first, whoever did */
    SIM_ARBITER_ROUND_ROBIN, /* the streams of a card in turn */
};

/* Readable and writable at any time; the number of cards and the texts are fixed once the file is made. Sets of cards
 * are bits. */
struct sim_settings {
    _Atomic uint64_t cards;
    _Atomic uint64_t memory_bytes;  /* of each card */
    _Atomic uint64_t kernel_ns;     /* of a kernel that does not say how long it takes */
    _Atomic uint64_t arbiter;       /* enum sim_arbiter */
    _Atomic uint64_t context_bytes; /* device memory that a context costs */
    _Atomic uint64_t stream_bytes;  /* and a stream */
    _Atomic uint64_t sick;          /* cards that the driver calls unhealthy */
    _Atomic uint64_t shared;        /* cards that containers may share: device-share */
    _Atomic uint64_t unshareable;   /* cards on which that cannot be switched */
    char chip[NPU_SIM_NAME];        /* as aclrtGetSocName names it */
    char driver[NPU_SIM_NAME];      /* version of the driver */
};

struct sim_process {
    union {
        pthread_mutex_t alive; /* robust, shared; held by a helper thread as long as the process lives */
        char room[64];         /* its size differs between machines, the file must not */
    };
    _Atomic uint32_t generation;
    _Atomic uint32_t tag;    /* index into the tags of the schedule */
    _Atomic int32_t pid;     /* as the process itself sees it */
    _Atomic int32_t helper;  /* thread id of the holder of `alive`, likewise */
    _Atomic uint64_t pid_ns; /* inode of its pid namespace: the two numbers above mean nothing elsewhere */
};

/* One piece of work in a stream. Words, since a reader may meet one that is being written anew; it then loses its race.
 */
enum sim_kind { SIM_ORDER, SIM_KERNEL, SIM_RECORD, SIM_WAIT };

struct sim_entry {
    _Atomic uint64_t seq;       /* the entry exists once this is the stream's next number */
    _Atomic uint64_t submitted; /* ns, monotonic clock */
    _Atomic uint64_t kind;      /* enum sim_kind */
    _Atomic uint64_t a;         /* KERNEL: ns | RECORD: event cell | WAIT: stream index */
    _Atomic uint64_t b;         /* KERNEL: group, 0 for none | RECORD: number of the record | WAIT: its seq */
    _Atomic uint64_t c;         /* KERNEL: members of the group */
};

struct sim_cell {
    _Atomic uint64_t head; /* version << 16 | buffer */
};

/* Values in cells begin with the lengths of their arrays, so that only what is in use is copied. */
#define SIM_LENGTHS 4

enum { SIM_MEMORY_TAGS, SIM_MEMORY_PROCESSES };

struct sim_memory_tag {
    uint64_t app;
    uint64_t overhead; /* what the runtime took for itself: contexts, streams, kernel binaries (module id 7) */
    uint64_t peak;     /* highest app + overhead at the end of an allocation by an application */
    uint64_t excesses; /* allocations that were granted beyond the limit that `npu-sim expect` set */
};

struct sim_memory_process {
    uint32_t slot;
    uint32_t generation;
    uint32_t tag;
    uint32_t pad;
    uint64_t app;
    uint64_t overhead;
};

/* The memory of one card. A process has a row once it has held any; rows of the dead are taken out. */
struct sim_memory {
    uint32_t lengths[SIM_LENGTHS];
    uint64_t used;
    uint64_t peak;
    struct sim_memory_tag tags[NPU_SIM_TAGS];
    struct sim_memory_process processes[NPU_SIM_PROCESSES];
};

enum { SIM_SCHEDULE_CARDS, SIM_SCHEDULE_TAGS, SIM_SCHEDULE_EFFECTS, SIM_SCHEDULE_STREAMS };

struct sim_card {
    uint32_t stream; /* of the running kernel, plus one; 0 when idle */
    uint32_t last;   /* stream served last, for round robin */
    uint32_t tag;    /* of the running kernel */
    uint32_t pad;
    uint64_t started;
    uint64_t takes;
    uint64_t ends; /* UINT64_MAX while the group is not complete */
    uint64_t group;
    uint64_t free_at; /* when the last kernel ended */
    uint64_t busy_ns;
    uint64_t kernels;
};

struct sim_tag {
    char name[NPU_SIM_NAME];
    uint64_t busy_ns[NPU_SIM_CARDS];
    uint64_t kernels[NPU_SIM_CARDS];
};

/* A completed record whose time still has to reach its event cell. */
struct sim_effect {
    uint64_t event;
    uint64_t number;
    uint64_t at;
};

struct sim_stream {
    uint64_t next;     /* number of the entry to be done next */
    uint64_t ready_at; /* when the one before it was done */
    uint64_t busy_ns;
    uint32_t owner; /* process slot */
    uint32_t generation;
    uint16_t card;
    uint16_t tag;
    uint8_t open;
    uint8_t dropped;
    uint16_t pad;
};

/* What all cards do: one value, because events and groups join streams of different cards. */
struct sim_schedule {
    uint32_t lengths[SIM_LENGTHS];
    uint64_t cursor; /* where the search for an unused stream begins, so that reuse comes late */
    struct sim_card cards[NPU_SIM_CARDS];
    struct sim_tag tags[NPU_SIM_TAGS];
    struct sim_effect effects[NPU_SIM_EFFECTS];
    struct sim_stream streams[NPU_SIM_STREAMS];
};

/* A word of `events`: the number of the record, and when it was done, in ns since the epoch; 0 while it was not. */
#define SIM_EVENT_NUMBER(number) ((uint64_t)(number) << 48)
#define SIM_EVENT_TIME           ((1ull << 48) - 1)

#define SIM_BUFFERS (2 * NPU_SIM_PROCESSES)

/* The file. It is sparse: what nobody used takes no room. */
struct sim_state {
    _Atomic uint64_t magic;
    uint32_t version;
    uint32_t pad;
    uint64_t size;
    uint64_t epoch; /* monotonic ns when the file was made; event times count from here */
    struct sim_settings settings;
    _Atomic uint64_t tag_limit[NPU_SIM_TAGS]; /* bytes that a tag is expected to stay within; 0 for none */
    _Atomic uint64_t claims;                  /* where the search for a free process slot begins */
    struct sim_cell schedule_cell;
    struct sim_cell memory_cell[NPU_SIM_CARDS];
    struct sim_process processes[NPU_SIM_PROCESSES];
    _Atomic uint64_t events[NPU_SIM_PROCESSES * NPU_SIM_EVENTS];
    struct sim_entry rings[NPU_SIM_STREAMS][NPU_SIM_QUEUE];
    struct sim_schedule schedules[SIM_BUFFERS];
    struct sim_memory memories[NPU_SIM_CARDS][SIM_BUFFERS];
};

_Static_assert(sizeof(struct sim_process) == 88, "a slot is the same on every machine");

#endif
