/* What a container sees of its cards: quota and its own use, 0 <= free <= total = quota.
 *
 * The real call goes first, so that wrong arguments and kinds of memory that a chip has not are answered by CANN. */
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "devices.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

struct view {
    uint64_t total; /* bytes */
    uint64_t used;
};

/* False: a card that is none of the container's, which is shown as it is. */
static bool look(struct vnpu_process *self, int card, struct view *view) {
    if (card == VNPU_NO_CARD)
        return false;
    vnpu_slots_sweep(self->ledger.region);
    struct vnpu_holdings holdings = vnpu_holdings(self->ledger.region, (uint32_t)card);
    uint64_t used = holdings.held + holdings.overhead;
    uint64_t total = vnpu_load_relaxed(&self->ledger.region->cards[card].quota_pages);
    view->total = total * VNPU_PAGE;
    view->used = (used < total ? used : total) * VNPU_PAGE;
    return true;
}

static uint64_t least(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

/* A quota above what the card has leaves the card's own numbers. */
static void narrow(const struct view *view, uint64_t unit, uint64_t *total, uint64_t *free_part) {
    uint64_t real_total = *total;

    *total = least(real_total, view->total / unit);
    if (free_part != NULL)
        *free_part = least(*free_part, least(*total, (view->total - view->used) / unit));
}

static uint32_t percent(const struct view *view) {
    return view->total == 0 ? 0 : (uint32_t)(view->used * 100 / view->total);
}

/* Rounded up: whoever holds something sees that it holds something. */
static uint64_t used_in(const struct view *view, uint64_t unit, uint64_t total) {
    return least(total, (view->used + unit - 1) / unit);
}

/* ---- AscendCL and runtime */

static int memory_info(enum vnpu_hook hook, enum vnpu_library library, int kind, bool has_kind, size_t *free_bytes,
                       size_t *total_bytes) {
    struct vnpu_call call;
    struct view view;

    if (!vnpu_begin(&call, hook, library))
        return call.result;
    if (has_kind)
        call.result = ((int (*)(int, size_t *, size_t *))call.real)(kind, free_bytes, total_bytes);
    else
        call.result = ((int (*)(size_t *, size_t *))call.real)(free_bytes, total_bytes);
    /* No total: a kind of memory that this chip has not. */
    if (call.result == 0 && *total_bytes != 0 && look(call.self, vnpu_card_of_thread(call.self), &view))
        narrow(&view, 1, total_bytes, free_bytes);
    return vnpu_end(&call);
}

VNPU_EXPORT int aclrtGetMemInfo(int kind, size_t *free_bytes, size_t *total_bytes);
int aclrtGetMemInfo(int kind, size_t *free_bytes, size_t *total_bytes) {
    return memory_info(VNPU_HOOK_aclrtGetMemInfo, ACL, kind, true, free_bytes, total_bytes);
}

VNPU_EXPORT int rtMemGetInfo(size_t *free_bytes, size_t *total_bytes);
int rtMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    return memory_info(VNPU_HOOK_rtMemGetInfo, RT, 0, false, free_bytes, total_bytes);
}

VNPU_EXPORT int rtMemGetInfoEx(int kind, size_t *free_bytes, size_t *total_bytes);
int rtMemGetInfoEx(int kind, size_t *free_bytes, size_t *total_bytes) {
    return memory_info(VNPU_HOOK_rtMemGetInfoEx, RT, kind, true, free_bytes, total_bytes);
}

VNPU_EXPORT int rtsMemGetInfo(int kind, size_t *free_bytes, size_t *total_bytes);
int rtsMemGetInfo(int kind, size_t *free_bytes, size_t *total_bytes) {
    return memory_info(VNPU_HOOK_rtsMemGetInfo, RT, kind, true, free_bytes, total_bytes);
}

struct physical_info {
    uint64_t total, free, huge_total, huge_free, giant_total, giant_free;
};

VNPU_EXPORT int rtMemGetInfoByType(int32_t device, uint32_t type, struct physical_info *info);
int rtMemGetInfoByType(int32_t device, uint32_t type, struct physical_info *info) {
    enum { TYPE_DDR = 1, TYPE_HBM = 2 };
    struct vnpu_call call;
    struct view view;

    if (!vnpu_begin(&call, VNPU_HOOK_rtMemGetInfoByType, RT))
        return call.result;
    call.result = ((int (*)(int32_t, uint32_t, struct physical_info *))call.real)(device, type, info);
    if (call.result == 0 && (type == TYPE_DDR || type == TYPE_HBM) && info->total != 0 &&
        look(call.self, vnpu_card_of_user(call.self, device), &view)) {
        narrow(&view, 1, &info->total, &info->free);
        narrow(&view, 1, &info->huge_total, &info->huge_free);
        narrow(&view, 1, &info->giant_total, &info->giant_free);
    }
    return vnpu_end(&call);
}

/* ---- DCMI and DSMI, whose clients have no context: a card is named by its place */

struct hbm_info {
    unsigned long long memory_size;
    unsigned int frequency;
    unsigned long long memory_usage;
    int temperature;
    unsigned int bandwidth_percent;
};

struct memory_info_v3 {
    unsigned long long memory_size;
    unsigned long long memory_available;
    unsigned int frequency;
    unsigned long huge_page_size;
    unsigned long huge_pages_total;
    unsigned long huge_pages_free;
    unsigned int percent;
    unsigned char reserved[60];
};

struct memory_info_v2 {
    unsigned long long memory_size;
    unsigned int frequency;
    unsigned int percent;
};

struct process_info {
    int pid;
    unsigned long bytes;
};

/* Where a DCMI card and chip stand among the container's cards. */
static int card_of_dcmi(struct vnpu_process *self, int card, int device) {
    int logic;
    int (*logic_id)(int *, int, int) = (int (*)(int *, int, int))vnpu_foreign(DCMI, "dcmi_get_device_logic_id");

    if (logic_id == NULL || logic_id(&logic, card, device) != 0 || logic < 0)
        return VNPU_NO_CARD;
    return vnpu_card_of_logic(self, (uint32_t)logic);
}

static void show_hbm(const struct view *view, uint64_t unit, struct hbm_info *info) {
    narrow(view, unit, (uint64_t *)&info->memory_size, NULL);
    info->memory_usage = used_in(view, unit, info->memory_size);
}

static void show_v2(const struct view *view, uint64_t unit, struct memory_info_v2 *info) {
    narrow(view, unit, (uint64_t *)&info->memory_size, NULL);
    info->percent = percent(view);
}

static void show_v3(const struct view *view, struct memory_info_v3 *info) {
    narrow(view, MIB, (uint64_t *)&info->memory_size, NULL);
    info->memory_available = info->memory_size - used_in(view, MIB, info->memory_size);
    info->percent = percent(view);
    if (info->huge_page_size != 0) {
        uint64_t pages = info->huge_pages_total;
        uint64_t free_pages = info->huge_pages_free;

        narrow(view, (uint64_t)info->huge_page_size * KIB, &pages, &free_pages);
        info->huge_pages_total = pages;
        info->huge_pages_free = free_pages;
    }
}

/* Keeps the container's own processes: what others run on the card is no business of this one. */
static int own_processes(const struct vnpu_process *self, struct process_info *processes, int count) {
    const struct vnpu_region *region = self->ledger.region;
    int kept = 0;

    for (int index = 0; index < count; index++)
        for (uint32_t slot = 0; slot < VNPU_SLOTS; slot++)
            if (vnpu_owner_lives(vnpu_load(&region->slots[slot].owner)) &&
                vnpu_load_relaxed(&region->slots[slot].pid) == processes[index].pid) {
                processes[kept++] = processes[index];
                break;
            }
    return kept;
}

enum { RATE_DDR = 1, RATE_HBM = 6 };

/* One hook of a DCMI card: `show` runs with `view` when the real call went well and the card is the container's. */
#define DCMI_HOOK(library, symbol, parameters, arguments, card, condition, show)                                       \
    VNPU_EXPORT int symbol parameters;                                                                                 \
    int symbol parameters {                                                                                            \
        struct vnpu_call call;                                                                                         \
        struct view view;                                                                                              \
                                                                                                                       \
        if (!vnpu_begin(&call, VNPU_HOOK_##symbol, library))                                                           \
            return call.result;                                                                                        \
        call.result = ((int(*) parameters)call.real)arguments;                                                         \
        if (call.outermost && call.result == 0 && (condition) && look(call.self, card, &view))                         \
            show;                                                                                                      \
        return vnpu_end(&call);                                                                                        \
    }

#define PLACE card_of_dcmi(call.self, card, device)
#define LOGIC vnpu_card_of_logic(call.self, (uint32_t)device)

DCMI_HOOK(DCMI, dcmi_get_device_hbm_info, (int card, int device, struct hbm_info *info), (card, device, info), PLACE,
          true, show_hbm(&view, MIB, info))
DCMI_HOOK(DCMI, dcmi_get_hbm_info, (int card, int device, struct hbm_info *info), (card, device, info), PLACE, true,
          show_hbm(&view, MIB, info))
DCMI_HOOK(DCMI, dcmi_get_device_memory_info_v3, (int card, int device, struct memory_info_v3 *info),
          (card, device, info), PLACE, info->memory_size != 0, show_v3(&view, info))
DCMI_HOOK(DCMI, dcmi_get_device_memory_info_v2, (int card, int device, struct memory_info_v2 *info),
          (card, device, info), PLACE, info->memory_size != 0, show_v2(&view, MIB, info))
DCMI_HOOK(DCMI, dcmi_get_memory_info, (int card, int device, struct memory_info_v2 *info), (card, device, info), PLACE,
          info->memory_size != 0, show_v2(&view, MIB, info))
DCMI_HOOK(DCMI, dcmi_get_device_utilization_rate, (int card, int device, int type, unsigned int *rate),
          (card, device, type, rate), PLACE, type == RATE_HBM || type == RATE_DDR, *rate = percent(&view))
DCMI_HOOK(DCMI, dcmi_get_device_resource_info, (int card, int device, struct process_info *processes, int *count),
          (card, device, processes, count), PLACE, true, *count = own_processes(call.self, processes, *count))
DCMI_HOOK(DCMI, dcmiv2_get_device_hbm_info, (int device, struct hbm_info *info), (device, info), LOGIC, true,
          show_hbm(&view, MIB, info))
DCMI_HOOK(DCMI, dcmiv2_get_device_utilization_rate, (int device, int type, unsigned int *rate), (device, type, rate),
          LOGIC, type == RATE_HBM || type == RATE_DDR, *rate = percent(&view))
DCMI_HOOK(DCMI, dcmiv2_get_device_proc_mem_info, (int device, struct process_info *processes, int *count),
          (device, processes, count), LOGIC, true, *count = own_processes(call.self, processes, *count))
DCMI_HOOK(DSMI, dsmi_get_hbm_info, (int device, struct hbm_info *info), (device, info), LOGIC, true,
          show_hbm(&view, KIB, info))
DCMI_HOOK(DSMI, dsmi_get_memory_info, (int device, struct memory_info_v2 *info), (device, info), LOGIC,
          info->memory_size != 0, show_v2(&view, KIB, info))
DCMI_HOOK(DSMI, dsmi_get_memory_info_v2, (int device, struct memory_info_v2 *info), (device, info), LOGIC,
          info->memory_size != 0, show_v2(&view, KIB, info))
