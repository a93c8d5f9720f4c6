/*
 * Physical memory with addresses of its own (reserve, create, map). A handle counts references: one from its creation,
 * one for each mapping, one for each time it was asked back from an address. The card has the memory back when none is
 * left, so freeing a handle that is still mapped frees nothing yet.
 */
#include "driver.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct drv_mem_handle {
    uint64_t refs;
    uint64_t bytes;
    uint64_t offset; /* in physical_fd */
    int size_class;
    uint32_t card;
    bool counted; /* on a card, not on the host */
    bool overhead;
    uint64_t shareable;           /* 0 until exported */
    struct drv_mem_handle *owner; /* of what was imported: that one's memory */
};

static uint64_t grow_physical(struct arena *arena, uint64_t bytes) {
    struct sim_driver *d = arena->context;
    if (d->physical_fd < 0)
        d->physical_fd = memfd_create("npu_sim", MFD_CLOEXEC);
    uint64_t at = ROUND_UP(d->physical_end ? d->physical_end : 1, bytes);
    if (d->physical_fd < 0 || ftruncate(d->physical_fd, (off_t)(at + bytes)) < 0)
        return 0;
    d->physical_end = at + bytes;
    return at;
}

static struct drv_mem_handle *known(struct sim_driver *d, drv_mem_handle_t *handle) {
    return block_find(d, (uintptr_t)handle, BLOCK_HANDLE) ? handle : NULL;
}

static struct drv_mem_handle *add(struct sim_driver *d, const struct drv_mem_handle *values) {
    struct drv_mem_handle *handle = malloc(sizeof *handle);
    if (!handle)
        return NULL;
    *handle = *values;
    handle->refs = 1;
    block_add(d,
              &(struct block){.at = (uintptr_t)handle, .kind = BLOCK_HANDLE, .card = handle->card, .handle = handle});
    return handle;
}

static void drop(struct sim_self *self, struct sim_driver *d, struct drv_mem_handle *handle) {
    struct block block;
    if (--handle->refs > 0)
        return;
    block_remove(d, (uintptr_t)handle, BLOCK_HANDLE, &block);
    if (handle->owner) {
        drop(self, d, handle->owner);
    } else {
        fallocate(d->physical_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)handle->offset,
                  (off_t)handle->bytes);
        arena_give(&d->physical, handle->size_class, handle->offset);
        if (handle->counted)
            sim_memory_give(self, handle->card, handle->bytes, handle->overhead);
    }
    free(handle);
}

static uint64_t page_of(uint32_t type) {
    return type == 0 ? PAGE_NORMAL : type == 1 ? PAGE_HUGE : PAGE_GIANT;
}

HAL_API int halMemCreate(drv_mem_handle_t **handle, size_t size, const struct drv_mem_prop *prop, uint64_t flag) {
    HAL_ENTER(halMemCreate, d, self);
    (void)flag;
    if (!handle || size == 0 || !prop || size % page_of(prop->pg_type))
        return DRV_INVALID_VALUE;
    struct drv_mem_handle made = {.bytes = size,
                                  .size_class = arena_class(size),
                                  .card = prop->devid,
                                  .counted = prop->side == SIDE_DEVICE,
                                  .overhead = prop->module_id == MODULE_RUNTIME};
    if (made.counted && !driver_sees(d, made.card))
        return DRV_INVALID_DEVICE;
    if (made.counted && !sim_memory_take(self, made.card, size, made.overhead))
        return DRV_OUT_OF_MEMORY;
    pthread_mutex_lock(&d->lock);
    d->physical.grow = grow_physical;
    d->physical.context = d;
    bool placed = made.size_class >= 0 && arena_take(&d->physical, made.size_class, &made.offset);
    drv_mem_handle_t *result = placed ? add(d, &made) : NULL;
    pthread_mutex_unlock(&d->lock);
    if (!result) {
        if (made.counted)
            sim_memory_give(self, made.card, size, made.overhead);
        return DRV_OUT_OF_MEMORY;
    }
    *handle = result;
    return 0;
}

HAL_API int halMemRelease(drv_mem_handle_t *handle) {
    HAL_ENTER(halMemRelease, d, self);
    pthread_mutex_lock(&d->lock);
    handle = known(d, handle);
    if (handle)
        drop(self, d, handle);
    pthread_mutex_unlock(&d->lock);
    return handle ? 0 : DRV_INVALID_HANDLE;
}

HAL_API int halMemAddressReserve(void **ptr, size_t size, size_t alignment, void *address, uint64_t flag) {
    HAL_ENTER(halMemAddressReserve, d, self);
    (void)flag;
    if (!ptr || size == 0)
        return DRV_INVALID_VALUE;
    size = ROUND_UP(size, PAGE_HUGE);
    size_t align = alignment > PAGE_HUGE ? alignment : PAGE_HUGE;
    char *at = mmap(address, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return DRV_OUT_OF_MEMORY;
    char *aligned = (char *)ROUND_UP((uintptr_t)at, align);
    if (aligned > at)
        munmap(at, (size_t)(aligned - at));
    munmap(aligned + size, (size_t)(at + align - aligned));
    pthread_mutex_lock(&d->lock);
    block_add(d,
              &(struct block){.at = (uintptr_t)aligned, .bytes = size, .kind = BLOCK_RESERVED, .card = NPU_SIM_CARDS});
    pthread_mutex_unlock(&d->lock);
    *ptr = aligned;
    return 0;
}

HAL_API int halMemAddressFree(void *ptr) {
    HAL_ENTER(halMemAddressFree, d, self);
    struct block block;
    pthread_mutex_lock(&d->lock);
    bool found = block_remove(d, (uintptr_t)ptr, BLOCK_RESERVED, &block);
    pthread_mutex_unlock(&d->lock);
    if (!found)
        return DRV_INVALID_VALUE;
    munmap(ptr, block.bytes);
    return 0;
}

HAL_API int halMemMap(void *ptr, size_t size, size_t offset, drv_mem_handle_t *handle, uint64_t flag) {
    HAL_ENTER(halMemMap, d, self);
    (void)flag;
    int result = DRV_INVALID_VALUE;
    pthread_mutex_lock(&d->lock);
    if (known(d, handle) && offset == 0 && size > 0 && size <= handle->bytes &&
        block_around(d, (uintptr_t)ptr, size, BLOCK_RESERVED) && !block_find(d, (uintptr_t)ptr, BLOCK_MAPPED)) {
        const struct drv_mem_handle *memory = handle->owner ? handle->owner : handle;
        void *at =
            mmap(ptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, d->physical_fd, (off_t)memory->offset);
        result = at == MAP_FAILED ? DRV_OUT_OF_MEMORY : 0;
    }
    if (result == 0) {
        handle->refs++;
        block_add(
            d, &(struct block){
                   .at = (uintptr_t)ptr, .bytes = size, .kind = BLOCK_MAPPED, .card = handle->card, .handle = handle});
    }
    pthread_mutex_unlock(&d->lock);
    return result;
}

static void unmap(struct sim_self *self, struct sim_driver *d, const struct block *block) {
    void *at = (void *)(uintptr_t)block->at;
    mmap(at, block->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    drop(self, d, block->handle);
}

HAL_API int halMemUnmap(void *ptr) {
    HAL_ENTER(halMemUnmap, d, self);
    struct block block;
    pthread_mutex_lock(&d->lock);
    bool found = block_remove(d, (uintptr_t)ptr, BLOCK_MAPPED, &block);
    if (found)
        unmap(self, d, &block);
    pthread_mutex_unlock(&d->lock);
    return found ? 0 : DRV_INVALID_VALUE;
}

HAL_API int halMemRetainAllocationHandle(drv_mem_handle_t **handle, void *ptr) {
    HAL_ENTER(halMemRetainAllocationHandle, d, self);
    pthread_mutex_lock(&d->lock);
    struct block *block = block_around(d, (uintptr_t)ptr, 1, BLOCK_MAPPED);
    if (block) {
        block->handle->refs++;
        *handle = block->handle;
    }
    pthread_mutex_unlock(&d->lock);
    return block ? 0 : DRV_INVALID_VALUE;
}

HAL_API int halMemExportToShareableHandle(drv_mem_handle_t *handle, int type, uint64_t flags, uint64_t *shareable) {
    SIM_ENTER(halMemExportToShareableHandle);
    (void)type;
    (void)flags;
    struct sim_self *self;
    struct sim_driver *d = driver(&self);
    if (!d || !shareable)
        return DRV_INVALID_VALUE;
    pthread_mutex_lock(&d->lock);
    handle = known(d, handle);
    if (handle) {
        if (!handle->shareable)
            handle->shareable = ++d->last_shareable;
        *shareable = handle->shareable;
    }
    pthread_mutex_unlock(&d->lock);
    return handle ? 0 : DRV_INVALID_HANDLE;
}

static struct drv_mem_handle *exported(struct sim_driver *d, uint64_t shareable) {
    for (int i = 0; i < BLOCK_BUCKETS; i++)
        for (struct block *block = d->blocks[i]; block; block = block->next)
            if (block->kind == BLOCK_HANDLE && block->handle->shareable == shareable)
                return block->handle;
    return NULL;
}

/* Within the process only: another one's memory cannot be reached through this simulator. */
HAL_API int halMemImportFromShareableHandle(uint64_t shareable, uint32_t device, drv_mem_handle_t **handle) {
    SIM_ENTER(halMemImportFromShareableHandle);
    (void)device;
    struct sim_self *self;
    struct sim_driver *d = driver(&self);
    if (!d || !handle)
        return DRV_INVALID_VALUE;
    int result = DRV_NOT_SUPPORTED;
    pthread_mutex_lock(&d->lock);
    struct drv_mem_handle *owner = shareable ? exported(d, shareable) : NULL;
    if (owner) {
        struct drv_mem_handle *made =
            add(d, &(struct drv_mem_handle){.bytes = owner->bytes, .card = owner->card, .owner = owner});
        owner->refs += made != NULL;
        result = made ? 0 : DRV_OUT_OF_MEMORY;
        *handle = made ? made : *handle;
    }
    pthread_mutex_unlock(&d->lock);
    return result;
}

HAL_API int halMemGetAllocationGranularity(const struct drv_mem_prop *prop, int option, size_t *granularity) {
    SIM_ENTER(halMemGetAllocationGranularity);
    (void)option;
    if (!prop || !granularity)
        return DRV_INVALID_VALUE;
    *granularity = page_of(prop->pg_type);
    return 0;
}

void physical_reset(struct sim_self *self, struct sim_driver *d, uint32_t card) {
    struct block *block;
    struct block removed;
    while ((block = block_of_card(d, card, BLOCK_MAPPED))) {
        block_remove(d, block->at, BLOCK_MAPPED, &removed);
        unmap(self, d, &removed);
    }
    while ((block = block_of_card(d, card, BLOCK_HANDLE))) {
        block->handle->refs = 1;
        drop(self, d, block->handle);
    }
}
