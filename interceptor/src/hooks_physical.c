/* Physical memory of the driver, without an address of its own.
 *
 * A handle has references: its creation, each mapping, each time it was asked back from an address, each import. The
 * device has the memory back with the last. */
#include <stdint.h>

#include "account.h"
#include "devices.h"
#include "driver.h"

struct property {
    uint32_t side, device, module, page_type, memory_type;
    uint64_t reserve;
};

static uint64_t page_of_type(uint32_t type) {
    return type == 0 ? VNPU_PAGE : type == 1 ? VNPU_PAGE_HUGE : VNPU_PAGE_GIANT;
}

VNPU_EXPORT int halMemCreate(void **handle, size_t size, const struct property *wanted, uint64_t flag);
int halMemCreate(void **handle, size_t size, const struct property *wanted, uint64_t flag) {
    struct vnpu_call call;

    if (!vnpu_driver_begin(&call, VNPU_HOOK_halMemCreate))
        return call.result;
    int (*real)(void **, size_t, const struct property *, uint64_t) = call.real;
    bool device = wanted != NULL && wanted->side == VNPU_SIDE_DEVICE;
    int card = device ? vnpu_card_of_hal(call.self, wanted->device) : VNPU_NO_CARD;
    uint64_t pages = device ? vnpu_pages(size, page_of_type(wanted->page_type)) : 0;
    bool overhead = device && wanted->module == VNPU_MODULE_RUNTIME;
    if (!call.outermost || card == VNPU_NO_CARD || pages == 0) {
        call.result = real(handle, size, wanted, flag);
        return vnpu_driver_end(&call);
    }
    call.result = VNPU_DRIVER_OUT_OF_MEMORY;
    if (vnpu_take(call.self, card, pages, overhead)) {
        call.result = real(handle, size, wanted, flag);
        if (call.result != 0 || !vnpu_keep(call.self, VNPU_HANDLE, (uintptr_t)*handle, card, pages, overhead))
            vnpu_give(call.self, card, pages, overhead);
    }
    return vnpu_driver_end(&call);
}

/* One reference less, in mind before the driver is asked: once it took the last it may give the handle to another
 * thread.
 */
struct dropped {
    uint64_t handle;
    bool last;
    struct vnpu_record record;
};

static struct dropped drop(struct vnpu_call *call, uint64_t handle) {
    struct dropped dropped = {.handle = handle};

    dropped.last = vnpu_untrack_once(&call->self->tracker, handle, &dropped.record);
    return dropped;
}

static void undo_drop(struct vnpu_call *call, struct dropped *dropped) {
    dropped->record.refs = 1;
    if (dropped->last)
        vnpu_track(&call->self->tracker, &dropped->record);
    else
        vnpu_track_again(&call->self->tracker, dropped->handle);
}

/* The driver did it. What was imported goes with its last reference, and is one reference less to its owner's memory.
 */
static void settle_drop(struct vnpu_call *call, struct dropped dropped) {
    while (dropped.last) {
        vnpu_give(call->self, dropped.record.card, dropped.record.pages, dropped.record.overhead);
        if (dropped.record.owner == 0)
            return;
        dropped = drop(call, dropped.record.owner);
    }
}

VNPU_EXPORT int halMemRelease(void *handle);
int halMemRelease(void *handle) {
    struct vnpu_call call;
    struct dropped dropped = {.last = false};

    if (!vnpu_driver_begin(&call, VNPU_HOOK_halMemRelease))
        return call.result;
    if (call.outermost)
        dropped = drop(&call, (uintptr_t)handle);
    call.result = ((int (*)(void *))call.real)(handle);
    if (call.result == 0)
        settle_drop(&call, dropped);
    else if (call.outermost)
        undo_drop(&call, &dropped);
    return vnpu_driver_end(&call);
}

/* Keeps in mind that something leads to the memory of a handle; another reference to it. */
static void refer(struct vnpu_call *call, enum vnpu_kind kind, uint64_t key, uint64_t owner) {
    int card = vnpu_track_again(&call->self->tracker, owner);
    const struct vnpu_record record = {
        .key = key, .owner = owner, .refs = 1, .card = (uint8_t)card, .kind = (uint8_t)kind};

    if (card != VNPU_NO_CARD)
        vnpu_track(&call->self->tracker, &record);
}

VNPU_EXPORT int halMemMap(void *address, size_t size, size_t offset, void *handle, uint64_t flag);
int halMemMap(void *address, size_t size, size_t offset, void *handle, uint64_t flag) {
    struct vnpu_call call;

    if (!vnpu_driver_begin(&call, VNPU_HOOK_halMemMap))
        return call.result;
    call.result = ((int (*)(void *, size_t, size_t, void *, uint64_t))call.real)(address, size, offset, handle, flag);
    if (call.outermost && call.result == 0)
        refer(&call, VNPU_MAPPING, (uintptr_t)address, (uintptr_t)handle);
    return vnpu_driver_end(&call);
}

VNPU_EXPORT int halMemUnmap(void *address);
int halMemUnmap(void *address) {
    struct vnpu_call call;
    struct vnpu_record mapping;
    struct dropped dropped = {.last = false};

    if (!vnpu_driver_begin(&call, VNPU_HOOK_halMemUnmap))
        return call.result;
    bool ours = call.outermost && vnpu_untrack(&call.self->tracker, VNPU_MAPPING, (uintptr_t)address, &mapping);
    if (ours)
        dropped = drop(&call, mapping.owner);
    call.result = ((int (*)(void *))call.real)(address);
    if (call.result == 0) {
        settle_drop(&call, dropped);
    } else if (ours) {
        undo_drop(&call, &dropped);
        vnpu_track(&call.self->tracker, &mapping);
    }
    return vnpu_driver_end(&call);
}

VNPU_EXPORT int halMemRetainAllocationHandle(void **handle, void *address);
int halMemRetainAllocationHandle(void **handle, void *address) {
    struct vnpu_call call;

    if (!vnpu_driver_begin(&call, VNPU_HOOK_halMemRetainAllocationHandle))
        return call.result;
    call.result = ((int (*)(void **, void *))call.real)(handle, address);
    if (call.outermost && call.result == 0)
        vnpu_track_again(&call.self->tracker, (uintptr_t)*handle);
    return vnpu_driver_end(&call);
}

VNPU_EXPORT int halMemExportToShareableHandle(void *handle, int type, uint64_t flags, uint64_t *shareable);
int halMemExportToShareableHandle(void *handle, int type, uint64_t flags, uint64_t *shareable) {
    struct vnpu_call call;
    struct vnpu_record record;

    if (!vnpu_driver_begin(&call, VNPU_HOOK_halMemExportToShareableHandle))
        return call.result;
    call.result = ((int (*)(void *, int, uint64_t, uint64_t *))call.real)(handle, type, flags, shareable);
    if (call.outermost && call.result == 0 &&
        vnpu_tracked(&call.self->tracker, VNPU_HANDLE, (uintptr_t)handle, &record)) {
        record = (struct vnpu_record){
            .key = *shareable, .owner = (uintptr_t)handle, .card = record.card, .kind = VNPU_SHAREABLE};
        vnpu_track(&call.self->tracker, &record);
    }
    return vnpu_driver_end(&call);
}

/* What this process exported itself stays on the card for as long as it is imported. Memory of another process is
 * counted there. */
VNPU_EXPORT int halMemImportFromShareableHandle(uint64_t shareable, uint32_t device, void **handle);
int halMemImportFromShareableHandle(uint64_t shareable, uint32_t device, void **handle) {
    struct vnpu_call call;
    struct vnpu_record exported;

    if (!vnpu_driver_begin(&call, VNPU_HOOK_halMemImportFromShareableHandle))
        return call.result;
    call.result = ((int (*)(uint64_t, uint32_t, void **))call.real)(shareable, device, handle);
    if (call.outermost && call.result == 0 && vnpu_tracked(&call.self->tracker, VNPU_SHAREABLE, shareable, &exported))
        refer(&call, VNPU_HANDLE, (uintptr_t)*handle, exported.owner);
    return vnpu_driver_end(&call);
}
