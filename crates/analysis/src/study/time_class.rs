//! Classes of the kernel's functions: a table from the beginnings of their names.

/// The class of code outside the kernel.
pub const USER: &str = "user";
/// The class of functions that the table does not name.
const OTHER: &str = "other kernel";

/// A class and how the names of its functions begin, those of Linux 5.10 to 6.18. The first class that matches is taken. Of a
/// class with a `*` only the executed function counts, and not its callers.
const CLASSES: &str = "
mitigations*: srso_ retbleed_ zen_untrain entry_untrain entry_ibpb write_ibpb clear_bhb __x86_indirect_ __x86_return_thunk x86_verw its_
entry*: entry_SYSCALL do_syscall_64 x64_sys_call syscall_ do_int80 exit_to_user error_entry error_return asm_exc_ asm_sysvec irqentry_
entry*: swapgs_ native_iret ret_from_ el0 invoke_syscall vectors __x64_sys_ __se_sys_ __arm64_sys_ __do_sys_
filter of system calls: __seccomp seccomp __secure_computing populate_seccomp
copy*: copy_page clear_page copy_user _copy_ copy_to copy_from __copy_ memcpy __memcpy memset __memset memmove __memmove rep_movs rep_stos
copy*: clear_user csum_partial_copy __arch_copy __arch_clear strncpy_from_user
page tables: asm_exc_page_fault exc_page_fault handle_mm_fault do_mem_abort copy_page_range copy_p4d copy_pte zap_ unmap_ exit_mmap dup_mm
page tables: tlb_ flush_tlb __flush_tlb native_flush_tlb free_pgtables free_pgd do_mmap mmap_region do_munmap do_vmi_ vm_mmap vm_munmap
page tables: mprotect change_protection move_page_tables do_madvise populate_vma pte_ pmd_ vma_ mremap
scheduler: schedule __schedule try_to_wake_up ttwu_ wake_up __wake_up default_wake autoremove_wake pick_next enqueue_ dequeue_ switch_mm
scheduler: finish_task_switch __switch_to select_task_rq sched_ do_nanosleep hrtimer_ futex_wait futex_wake do_wait wake_q update_curr
tasks: kernel_clone copy_process do_exit do_group_exit release_task bprm_ begin_new_exec load_elf do_execve
network: tcp_ udp_ ip_ ip6_ __ip_ inet_ sock_ __sock_ unix_ skb_ __sys_send __sys_recv net_ loopback_
signals: do_signal get_signal send_signal __send_signal do_send_s force_sig do_sigaction arch_do_signal
files: vfs_ ksys_ do_sys_open do_filp path_ filename_ link_path filemap_ ext4_ xfs_ btrfs_ shmem_ pipe_ do_iter new_sync generic_file
files: iomap_ blk_ submit_bio iterate_dir do_unlink do_renameat do_mkdir fput __fput fget __fget close_fd do_pipe ep_ do_epoll do_sys_poll io_
security: security_ apparmor_ selinux_ landlock_ bpf_lsm audit_ __audit
";

/// The class of a stack of the kernel's functions, the executed one first: that of the first function that has one.
pub fn kernel_class<'a>(mut functions: impl Iterator<Item = &'a str>) -> &'static str {
    let executed = functions.next().and_then(|name| find_class(name, true));
    executed.or_else(|| functions.find_map(|name| find_class(name, false))).unwrap_or(OTHER)
}

fn find_class(name: &str, is_executed: bool) -> Option<&'static str> {
    let mut classes = CLASSES.lines().filter_map(|line| line.split_once(": "));
    let (class, _) = classes.find(|(class, begins)| {
        (is_executed || !class.ends_with('*')) && begins.split(' ').any(|begin| name.starts_with(begin))
    })?;
    Some(class.trim_end_matches('*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_has_the_class_of_its_first_function_that_has_one() {
        for (stack, class) in [
            (&["srso_alias_safe_ret", "ksys_read"][..], "mitigations"),
            (&["clear_page_erms", "handle_mm_fault", "asm_exc_page_fault"], "copy"),
            (&["_raw_spin_lock", "try_to_wake_up", "pipe_write", "do_syscall_64"], "scheduler"),
            (&["_raw_spin_lock", "pipe_write", "do_syscall_64"], "files"),
            (
                &["(generated code, such as a filter of system calls)", "__seccomp_filter", "do_syscall_64"],
                "filter of system calls",
            ),
            (&["do_syscall_64", "entry_SYSCALL_64_after_hwframe"], "entry"),
            (&["mutex_lock", "do_syscall_64"], "other kernel"),
            (&[], "other kernel"),
        ] {
            assert_eq!(kernel_class(stack.iter().copied()), class, "{stack:?}");
        }
    }
}
