//! Lists of CPUs or nodes in the kernel's notation: `0-3,8`. Sets of CPUs in the kernel's format, for every CPU that Linux can
//! have. The sets of the C library and of nix end at 1024.
//!
//! # Invariants
//!
//! * **OWN-MASK**: the kernel reads or writes one local mask, within its length.

#![allow(unsafe_code)]

use nix::errno::Errno;

/// The CPUs of a list in the kernel's notation. A part that is neither a number nor a range is ignored, so that no CPU is
/// reported that does not exist.
pub fn parse(list: &str) -> Vec<usize> {
    list.trim().split(',').filter_map(parse_range).flatten().collect()
}

fn parse_range(part: &str) -> Option<std::ops::RangeInclusive<usize>> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
}

/// A list in the kernel's notation, of CPUs in ascending order.
pub fn format(cpus: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let text = |(first, last): (usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(",")
}

/// The most CPUs that Linux can be built for (`NR_CPUS` of arch/x86/Kconfig). The kernel refuses to write its mask into a
/// shorter one (EINVAL), and ignores the excess bits of a longer one.
const MOST: usize = 8192;
const BITS: usize = usize::BITS as usize;

/// A set of CPUs. It allocates nothing, so that a forked child can use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuMask([usize; MOST / BITS]);

impl CpuMask {
    /// The set of these CPUs.
    ///
    /// # Errors
    /// EINVAL for a number that no CPU can have.
    pub fn new(cpus: &[usize]) -> nix::Result<Self> {
        let mut words = [0; MOST / BITS];
        for cpu in cpus {
            *words.get_mut(cpu / BITS).ok_or(Errno::EINVAL)? |= 1 << (cpu % BITS);
        }
        Ok(Self(words))
    }

    /// The CPUs that this thread may run on.
    ///
    /// # Errors
    /// sched_getaffinity(2) is refused.
    pub fn of_thread() -> nix::Result<Self> {
        let mut words = [0; MOST / BITS];
        // SAFETY: OWN-MASK.
        let answer = unsafe { libc::sched_getaffinity(0, size_of_val(&words), words.as_mut_ptr().cast()) };
        Errno::result(answer).map(|_| Self(words))
    }

    /// Lets this thread run on these CPUs.
    ///
    /// # Errors
    /// sched_setaffinity(2) is refused, as where none of them is online.
    pub fn apply(&self) -> nix::Result<()> {
        // SAFETY: OWN-MASK.
        Errno::result(unsafe { libc::sched_setaffinity(0, size_of_val(&self.0), self.0.as_ptr().cast()) })
            .map(drop)
    }

    /// How many CPUs are in it.
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The numbers in it, ascending.
    pub fn cpus(&self) -> impl Iterator<Item = usize> {
        (0..MOST).filter(|cpu| self.0[cpu / BITS] & 1 << (cpu % BITS) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_written_as_it_is_read() {
        for list in ["0-3,8", "5", "", "1,3,5-6"] {
            assert_eq!(format(&parse(list)), list);
        }
        assert_eq!(parse("0-3,8\n"), [0, 1, 2, 3, 8]);
    }

    #[test]
    fn an_empty_or_broken_list_names_no_cpu() {
        assert!(parse("\n").is_empty());
        assert_eq!(parse("a-b,2"), [2]);
    }

    #[test]
    fn a_mask_holds_every_cpu_that_linux_can_have() {
        let cpus = [0, 63, 64, 1023, 1024, 1500, 8191];
        assert_eq!(CpuMask::new(&cpus).expect("a mask").cpus().collect::<Vec<_>>(), cpus);
        assert_eq!(CpuMask::new(&[8192]), Err(Errno::EINVAL));
        let own = CpuMask::of_thread().expect("ours");
        assert!(own.count() == own.cpus().count() && own.count() > 0 && own.apply().is_ok());
        // A CPU that is not there is refused by the kernel, and not because the mask ends before it.
        assert_eq!(CpuMask::new(&[8191]).expect("a mask").apply(), Err(Errno::EINVAL));
    }
}
