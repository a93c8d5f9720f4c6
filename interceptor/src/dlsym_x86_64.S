/* void *dlsym(void *handle, const char *name): jumps to what vnpu_dlsym_target answers, with the caller's own frame. */
#ifdef __x86_64__
    .text
    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp /* calls want the stack aligned */
    .cfi_adjust_cfa_offset 8
    call vnpu_dlsym_target
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmpq *%rax
    .cfi_endproc
    .size dlsym, .-dlsym
#endif
    .section .note.GNU-stack, "", @progbits
