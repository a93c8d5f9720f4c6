/* What the processes of a container, its limiter and the node share: region, registry and mirror.
 *
 * REGION, one per container, /dev/shm/vnpu.<inode of the mount namespace>. Quota, who is alive, who holds what.
 *
 *   States.   absent -> published -> ready -> (limiter dead -> taken over, ready)*. A limiter makes the region under a
 *             temporary name, complete, and publishes it by a rename that never replaces: existence is completeness.
 *             Then it takes its place on each card, and is ready. That is told by the kernel alone: an open-file-
 *             description lock on byte VNPU_LOCK_LIMITER, taken after the limiter's last fork. The guardian holds
 *             VNPU_LOCK_GUARDIAN in the same way, and whoever makes, judges or takes over the file VNPU_LOCK_KEEPER.
 *             A limiter that takes over adds 1 to `generation` and changes nothing else: quota and the charges of
 *             living processes stay.
 *   Writers.  The limiter writes the head, the cards and the registry slots. A process writes its own slot and its own
 *             books, with two exceptions that anyone may do with one compare-and-swap: claim a dead slot, and take back
 *             somebody's question (below). Counters (denials, waits) are added to by all.
 *   Owner.    `slot.owner` is a robust futex word: the thread id of a thread that lives as long as its process. The
 *             kernel itself sets VNPU_OWNER_DIED when that thread ends, however it ends. A slot counts while it has a
 *             thread id and neither VNPU_OWNER_DIED nor VNPU_OWNER_SETTLING (claimed, books not yet cleared). A slot
 *             that does not count is worth nothing: the device freed what its process held. Thread ids are those of the
 *             owner's own pid namespace and are compared by nobody but the kernel.
 *   Books.    `book.charge` packs what a process holds of one card and what it asks for, in pages of 4 KiB:
 *             held << 36 | asked << 8 | tag. To allocate, a process (1) publishes its question, (2) sums all slots that
 *             count, (3) turns the question into held with one compare-and-swap, then calls the device, and gives back
 *             on failure. Two who ask at once each see the other's question; whoever cannot be served beside it takes
 *             the other's question back (which makes its owner ask again), the later slot only after a short wait.
 *             So nobody waits for a stopped process, and held is at every instruction at least what the process has.
 *             `book.overhead` is memory of the CANN runtime itself: charged, never refused.
 *   Order.    Questions and sums are sequentially consistent. Everything else needs acquire and release alone.
 *   Belief.   Every process of a container may write all of its region: soft slicing is no security boundary. Readers
 *             outside believe nothing: they check indices and sizes and never follow anything.
 *
 * REGISTRY, one per card, shared by all pods on it: <card>.vnpu_registry. Whose turn it is.
 *
 *   Turn.     `turn` = start << 8 | closing << 7 | holder + 1, start in microseconds of CLOCK_MONOTONIC; 0 is nobody's.
 *             It is the gate that a launch reads, and its start is its serial number. Any transition (grant, close,
 *             pass, take over) is one compare-and-swap that any agent of any container may do; who wins it charges the
 *             holder. There is no lock, so a process stopped at any instruction blocks nobody.
 *   Tenants.  A limiter keeps its tenant with an open-file-description lock on byte VNPU_LOCK_TENANT + index, and
 *             renews `seen_us` every second. A tenant is dead, and may be taken by another, when nobody holds the lock
 * and it was not seen for VNPU_TENANT_SILENCE_US. `key` names the container; a process whose region names another key
 * has lost its tenant and launches nothing until its limiter joined again. Belief.   All containers of the card may
 * write it. Values are clamped when read; a container can at worst disturb the sharing of the cards that it was given.
 *
 * MIRROR, one per container, at NPU_LOCAL_SHM_PATH, for readers outside. The first 6200 bytes are the layout that the
 *   upstream monitor reads; our own figures follow. The limiter alone writes it, once a second; `sequence` is odd while
 * it does.
 *
 * Only fixed-width scalars, arrays and explicit padding: the text between the two marks is also read by cffi. */
#ifndef VNPU_REGION_H
#define VNPU_REGION_H

#include <stddef.h>
#include <stdint.h>

/* ---- cdef ---- */
#define VNPU_REGION_MAGIC   0x6e6f69676572564e
#define VNPU_REGISTRY_MAGIC 0x797274736967564e
#define VNPU_MIRROR_MAGIC   0x726f7272696d564e
#define VNPU_LAYOUT_VERSION 1

#define VNPU_PAGE    4096
#define VNPU_CARDS   16
#define VNPU_SLOTS   512
#define VNPU_TENANTS 120

#define VNPU_OWNER_TID      0x3fffffff
#define VNPU_OWNER_DIED     0x40000000
#define VNPU_OWNER_SETTLING 0x80000000

#define VNPU_CHARGE_HELD_SHIFT  36
#define VNPU_CHARGE_ASKED_SHIFT 8
#define VNPU_CHARGE_PAGES       0xfffffff
#define VNPU_CHARGE_TAG         0xff

#define VNPU_TURN_START_SHIFT 8
#define VNPU_TURN_CLOSING     0x80
#define VNPU_TURN_HOLDER      0x7f

#define VNPU_CEILING   1
#define VNPU_NO_TENANT 0xffffffff

#define VNPU_LOCK_LIMITER  0
#define VNPU_LOCK_GUARDIAN 1
#define VNPU_LOCK_KEEPER   2
#define VNPU_LOCK_TENANT   64
#define VNPU_LOCK_WORKERS  256

#define VNPU_TENANT_SILENCE_US 10000000

#define VNPU_UPSTREAM_REPORTS   32
#define VNPU_UPSTREAM_PROCESSES 64
#define VNPU_UPSTREAM_CARDS     8

struct vnpu_card {
    uint64_t quota_pages;
    uint32_t id;       /* the card's number in ASCEND_VISIBLE_DEVICES */
    uint32_t priority; /* percent, 0: none was asked for */
    uint32_t tenant;   /* index in the card's registry, or VNPU_NO_TENANT */
    uint32_t reserved;
    uint64_t tenant_key;
    uint64_t denials;    /* allocations refused */
    uint64_t waits;      /* launches that waited for the turn */
    uint64_t wait_us;    /* how long they waited in all */
    uint64_t longest_us; /* and the longest */
    uint8_t unused[64];
};

struct vnpu_slot {
    uint32_t owner; /* robust futex word */
    int32_t pid;    /* as its process sees itself */
    uint64_t pid_namespace;
    uint64_t joined_us;
    uint64_t generation; /* of the region when it joined */
    char name[16];
    uint8_t unused[16];
};

struct vnpu_book {
    uint64_t charge;   /* held, asked, tag */
    uint64_t overhead; /* pages of the runtime itself */
    uint64_t running;  /* the turn in which it launched and has not drained, 0: drained */
    uint64_t spare;
};

struct vnpu_books {
    struct vnpu_book slots[VNPU_SLOTS];
};

struct vnpu_region {
    uint64_t magic;
    uint32_t version;
    uint32_t size; /* of the file: `books` has card_count rows */
    uint32_t card_count;
    uint32_t slot_count;
    uint64_t generation;
    uint64_t mount_namespace;
    uint64_t key; /* names this container in the registries */
    uint64_t created_us;
    uint32_t flags;      /* VNPU_CEILING */
    uint32_t stop;       /* futex: limiter and guardian are asked to end */
    uint32_t slots_used; /* no slot at or above this index was ever claimed */
    int32_t limiter_pid; /* for people alone */
    int32_t guardian_pid;
    uint32_t rounds; /* of the limiter's: one that lives goes on to the next when `stop` is woken */
    char registry_dir[256];
    char mirror_path[256];
    uint8_t unused[176];
    struct vnpu_card cards[VNPU_CARDS];
    struct vnpu_slot slots[VNPU_SLOTS];
    struct vnpu_books books[VNPU_CARDS];
};

struct vnpu_tenant {
    uint64_t key;     /* of the container's region, 0: free */
    uint64_t seen_us; /* its limiter was here */
    uint64_t virtual_us;
    uint64_t held_us;
    uint64_t wanted_us;  /* when it last began to want the card */
    uint64_t arrival_us; /* ceiling: theoretical arrival time */
    uint32_t weight;     /* percent of the card */
    uint32_t flags;
    uint32_t wants;
    uint32_t beat;  /* moves while a helper drains */
    uint32_t doors; /* futex: moves with every change that its processes wait for */
    uint32_t reserved;
    uint8_t unused[56];
};

struct vnpu_registry {
    uint64_t magic;
    uint32_t version;
    uint32_t size;
    uint32_t id;
    uint32_t tenant_count;
    uint64_t created_us;
    uint8_t unused[96];
    uint64_t turn;
    uint8_t turn_line[120];
    struct vnpu_tenant tenants[VNPU_TENANTS];
};

struct vnpu_upstream_report {
    uint64_t batch;
    uint64_t start_us;
    uint64_t duration_us;
    uint32_t occupied;
    int32_t pid;
};

struct vnpu_upstream_process {
    int32_t pid;
    int32_t host_pid;
    uint64_t memory[VNPU_UPSTREAM_CARDS]; /* bytes */
    uint32_t active;
    uint32_t reserved;
};

struct vnpu_mirror_card {
    uint64_t quota;    /* bytes */
    uint64_t used;     /* bytes that applications hold */
    uint64_t overhead; /* bytes that the runtime itself holds */
    uint64_t held_us;  /* time that the card was held */
    uint64_t denials;
    uint64_t waits;
    uint64_t wait_us;
    uint64_t longest_us;
    uint32_t id;
    uint32_t priority;
    uint32_t weight_sum; /* of all tenants of the card */
    uint32_t weight;
};

struct vnpu_mirror {
    uint64_t memory_limit; /* bytes; from here to `processes` upstream's layout */
    uint64_t memory_used;
    uint64_t priority;
    uint32_t state;
    uint32_t state_padding;
    uint64_t batch;
    uint64_t tokens;
    uint32_t active_workers;
    uint32_t reported;
    struct vnpu_upstream_report reports[VNPU_UPSTREAM_REPORTS];
    struct vnpu_upstream_process processes[VNPU_UPSTREAM_PROCESSES];
    uint64_t magic;
    uint32_t version;
    uint32_t size;
    uint32_t sequence;
    uint32_t card_count;
    uint64_t written_us; /* CLOCK_REALTIME */
    uint64_t generation;
    uint32_t process_count;
    uint32_t unmanaged_count; /* processes with an NPU device open and no libvnpu mapped */
    struct vnpu_mirror_card cards[VNPU_CARDS];
};
/* ---- end of cdef ---- */

#define VNPU_OFFSET(type, field, offset)                                                                               \
    _Static_assert(offsetof(struct type, field) == (offset), #type "." #field " moved");
#define VNPU_SIZE(type, size) _Static_assert(sizeof(struct type) == (size), #type " changed its size");
#include "vnpu/layout.h"
#undef VNPU_OFFSET
#undef VNPU_SIZE

#endif
