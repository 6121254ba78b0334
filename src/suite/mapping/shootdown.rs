//! Changes of a mapping that the CPUs of other threads must notice: their translation caches are flushed.

use super::{MIB, touched_region};
use crate::kit::contract::*;
use crate::kit::operation_table::{Row, entered, operation_rows, repeated};
use crate::platform::partner::{Class, Kind, Partner};
use crate::platform::region::{self, PAGE, Region};
use nix::errno::Errno;
use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Seek};
use std::sync::Arc;

const WHY: &str = "an interrupt to each of the other CPUs, and a wait for the last answer";

macro_rules! rows {
    ($($count:literal $beside:literal;)*) => { operation_rows! { $(
        concat!("shootdown-protect/", $count), concat!("a touched page made read-only and writable again, ", $beside),
            entered![SYS_mprotect, SYS_mprotect], 6_000.0 + 600.0 * $count as f64, 3_000.0, WHY, |place, _| protect_beside(place, $count);
        concat!("shootdown-unmap/", $count), concat!("a page mapped, populated and unmapped, ", $beside),
            entered![SYS_mmap, SYS_munmap], 4_000.0 + 300.0 * $count as f64, 4_000.0, WHY, |place, _| unmap_beside(place, $count);
    )* } };
}

pub(super) const ROWS: &[Row] = rows! {
    0 "no other thread running";
    1 "beside a thread on another CPU";
    3 "beside threads on 3 other CPUs";
    7 "beside threads on 7 other CPUs";
    15 "beside threads on 15 other CPUs";
};

/// An operation on memory that other threads of this process read meanwhile.
struct Beside {
    inner: Box<dyn Subject>,
    readers: Vec<Partner>,
    /// The open file of interrupt counts, if it can be opened. Opening it in a batch could add a failed call to the operation's
    /// calls.
    counts: Option<File>,
    /// For each batch, the number of flushes by interrupt per iteration.
    interrupts: Vec<f64>,
}

impl Beside {
    fn start(
        place: &Place,
        count: usize,
        read: &Arc<Region>,
        inner: Box<dyn Subject>,
    ) -> Result<Box<dyn Subject>> {
        place.cpus.check_count(count + 1).map_err(Error::Missing)?;
        let start = |cpu: &usize| {
            let region = Arc::clone(read);
            let step = move || {
                (0..1_000).for_each(|_| _ = black_box(region.read_first_byte(0)));
                0
            };
            Partner::start(Kind::Thread, (*cpu, Class::Ordinary), step, || ())
        };
        let readers = place.cpus.others[..count].iter().map(start).collect::<Result<_>>()?;
        let counts = File::open("/proc/interrupts").ok();
        Ok(Box::new(Self { inner, readers, counts, interrupts: Vec::new() }))
    }

    /// The number of TLB flushes by interrupt so far, summed over all CPUs; `None` if the kernel does not count them here.
    fn flush_interrupts(&mut self) -> Option<u64> {
        let (file, mut text) = (self.counts.as_mut()?, String::new());
        file.rewind().and_then(|()| file.read_to_string(&mut text)).ok()?;
        count_flushes(&text)
    }

    /// Notes the interrupts per iteration; an error if they are far fewer than in another batch, since then the other threads did
    /// not run. A processor that flushes without interrupts has none in any batch. Short batches are ignored: in them the
    /// interrupts of other programs weigh as much.
    fn note_interrupts(&mut self, flushed: u64, iterations: u64) -> Result<()> {
        const SHORT: u64 = 100;
        if iterations < SHORT {
            return Ok(());
        }
        let rate = flushed as f64 / iterations as f64;
        let most = self.interrupts.iter().copied().fold(0.0, f64::max);
        if rate < 0.75 * most {
            return Err(Error::Disturbed(format!(
                "{rate:.1} interrupts for flushes an iteration, where there were {most:.1} before: the other threads did not run"
            )));
        }
        self.interrupts.push(rate);
        Ok(())
    }
}

impl Subject for Beside {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let before = self.flush_interrupts();
        let ticks = self.inner.run(iterations, clock)?;
        if let Some(fate) = self.readers.iter_mut().find_map(Partner::fate) {
            return Err(fate.into_error(""));
        }
        if let Some((before, after)) = before.zip(self.flush_interrupts()) {
            self.note_interrupts(after.saturating_sub(before), iterations)?;
        }
        Ok(ticks)
    }

    fn report(&self) -> Report {
        Report {
            partners: self.readers.iter().map(Partner::task).collect(),
            found: vec![Found::new("interrupts", "", self.interrupts.clone())],
            ..Report::default()
        }
    }
}

fn protect_beside(place: &Place, count: usize) -> Result<Box<dyn Subject>> {
    let region = Arc::new(touched_region(PAGE)?);
    let read = Arc::clone(&region);
    let turns = repeated("mprotect", move || {
        let protect = |writable| region.protect(0..1, writable).map_err(|_| Errno::last());
        protect(false)?;
        protect(true)?;
        region.write(0..1, 1);
        Ok(())
    })?;
    Beside::start(place, count, &read, turns)
}

fn unmap_beside(place: &Place, count: usize) -> Result<Box<dyn Subject>> {
    let turns = repeated("mmap and munmap", || match region::map_and_unmap(PAGE, true) {
        0 => Ok(()),
        answer => Err(Error::decode_errno(answer)),
    })?;
    Beside::start(place, count, &Arc::new(touched_region(MIB)?), turns)
}

fn count_flushes(interrupts: &str) -> Option<u64> {
    let line = interrupts.lines().find_map(|line| line.trim_start().strip_prefix("TLB:"))?;
    Some(line.split_ascii_whitespace().map_while(|count| count.parse::<u64>().ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_of_all_cpus_are_summed() {
        assert_eq!(count_flushes("  CPU0 CPU1\n LOC:  5 6\n TLB:  10  32  TLB shootdowns\n"), Some(42));
        assert_eq!(count_flushes(" IPI0: 1 2 Rescheduling interrupts\n"), None);
    }
}
