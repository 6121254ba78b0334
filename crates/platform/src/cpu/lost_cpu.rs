//! What is seen of a CPU that a thread was pinned to and no longer runs on. The kernel does not say why.

use super::{allowed_cpus, cpu_list};
use crate::kernel_files::KernelFiles;

/// Explains, in a sentence, why the calling thread no longer runs on the CPU that it was pinned to.
pub fn why_lost(cpu: usize) -> String {
    describe_lost_cpu(cpu, online_cpus().as_deref(), &allowed_cpus())
}

/// The same for another thread, whose affinity is not read.
pub fn why_partner_lost(cpu: usize) -> String {
    describe_lost_cpu(cpu, online_cpus().as_deref(), &[cpu])
}

fn online_cpus() -> Option<Vec<usize>> {
    KernelFiles::live().read_first_line("sys/devices/system/cpu/online").map(|list| cpu_list::parse(&list))
}

fn describe_lost_cpu(cpu: usize, online: Option<&[usize]>, allowed: &[usize]) -> String {
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
            let sentence = describe_lost_cpu(1, online, allowed);
            assert!(sentence.contains(words), "{sentence}");
        }
    }
}
