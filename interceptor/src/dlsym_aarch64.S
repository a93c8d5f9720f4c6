/* void *dlsym(void *handle, const char *name): jumps to what vnpu_dlsym_target answers, with the caller's own frame. */
#ifdef __aarch64__
    .text
    .globl dlsym
    .type dlsym, %function
dlsym:
    .cfi_startproc
    hint #34 /* bti c: a landing place for indirect calls, nothing on older machines */
    stp x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    mov x29, sp
    stp x0, x1, [sp, #16]
    bl vnpu_dlsym_target
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_adjust_cfa_offset -32
    .cfi_restore x29
    .cfi_restore x30
    br x16
    .cfi_endproc
    .size dlsym, .-dlsym
#endif
    .section .note.GNU-stack, "", %progbits
