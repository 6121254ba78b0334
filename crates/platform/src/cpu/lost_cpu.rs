//! What is seen of a CPU that a thread was pinned to and no longer runs on. The kernel does not say why.

use super::{allowed, cpu_list};
use crate::kernel_files::KernelFiles;

/// A sentence on this CPU, where the thread that asks was pinned to it.
pub fn why_lost(cpu: usize) -> String {
    seen(cpu, online().as_deref(), &allowed())
}

/// The same of another thread, whose affinity is not looked at.
pub fn why_partner_lost(cpu: usize) -> String {
    seen(cpu, online().as_deref(), &[cpu])
}

fn online() -> Option<Vec<usize>> {
    KernelFiles::live().line("sys/devices/system/cpu/online").map(|list| cpu_list::parse(&list))
}

fn seen(cpu: usize, online: Option<&[usize]>, allowed: &[usize]) -> String {
    match online {
        Some(list) if !list.contains(&cpu) => {
            format!("CPU {cpu} is offline now (/sys/devices/system/cpu/online)")
        }
        _ if !allowed.contains(&cpu) => format!(
            "the thread may run on CPU {} only now: its affinity or the control group's cpuset.cpus was changed",
            cpu_list::format(allowed)
        ),
        _ => format!(
            "CPU {cpu} is there and may be used: the affinity was changed for a moment, or this kernel does not keep a thread where it \
             is pinned"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_what_is_seen() {
        for (online, allowed, words) in [
            (Some(&[0][..]), &[0][..], "CPU 1 is offline now"),
            (Some(&[0, 1]), &[0], "may run on CPU 0 only"),
            (None, &[0], "may run on CPU 0 only"),
            (Some(&[0, 1]), &[1], "does not keep a thread"),
        ] {
            let sentence = seen(1, online, allowed);
            assert!(sentence.contains(words), "{sentence}");
        }
    }
}
