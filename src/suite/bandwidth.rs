//! # What is timed
//! Going over memory in order: `read` adds up its words, `write` stores a constant, `copy` moves one half to the
//! other, `update` adds to each word in place; `scale`, `add` and `triad` are STREAM's. The last part of an id is the
//! size of all arrays together. An iteration moves 16 KiB (15 for three arrays), read and written counted alike: of a
//! large size the next part each time, round and round. It is done by the widest vectors of the machine; `scalar`,
//! `sse2`, `avx2`, `avx512` and `neon` name others. `nt` stores past the caches. `memcpy` and `memset` are the C
//! library's, `rep-movsb` and `rep-stosb` the processor's own loops: there an iteration is one call for the whole.
//! Of more than 16 MiB STREAM's three ask ahead for the lines that they will write, and `copy-nt` takes four pages in
//! turns and asks ahead for what it will read, where the processor can.
//! `all` is a thread on every CPU and `two` on two of them, each on memory of its own of that size, from a common
//! signal until the last has finished. Stores are over when everybody can see them: a fence is timed, too.
//!
//! # What is not
//! Mapping, first touch by the CPU that will use it, filling, and looking at what is left behind.
//!
//! # How we know
//! What is read are numbers in order: each batch's sum must be that of the closed form. What is written is looked at
//! whole at set-up; then, before each batch, words ahead are spoilt, and afterwards must hold what the operation
//! leaves. A loop that is not run, or skips a word, ends the case. Page faults inside are none. Up to 32 KiB it lies in
//! base pages, as `base-pages` does, everything else in transparent huge pages of 2 MiB, on each thread: asked of
//! `/proc/self/smaps`, and where they are not given the case is skipped. The evidence says by what vectors it was.
//!
//! # What fools it
//! Zeroes: Zen 4 takes non-temporal stores of zeroes more than three times as fast as those of anything else, and
//! `memset` to zero of much memory uses them. Hence the pattern, and `zeroes` beside it. Large caches: a size is no
//! level; read off the curve where one ends. Dirty lines: what a batch leaves in the caches the next one's writes
//! push out, so that it is paid for, but only if nobody reads all of it between: hence few words are looked at.
//! Neighbours: who keeps another CPU busy meanwhile is told in a note below the table; but on a shared host the memory
//! is that of other guests, too, and no counter of this machine tells. Chiplets: those of
//! EPYC write to memory by a link of some 28 GB/s that all cores of one share; where a hypervisor moves the virtual
//! CPUs, two of them on one chiplet write together as much as one alone, and twice as much on two.
//!
//! # Reading the number
//! `bandwidth` counts the program's bytes, as STREAM does: a copy reads and writes, and counts twice what mbw and perf
//! count. A processor that must read a line before it may write a part of it moves more than that: this
//! read-for-ownership is not counted. Where stores past the caches are twice as fast, it is what they save; a core
//! that sees that whole lines are written may save it by itself. `cycle` is bytes by the core cycle, to be held
//! against the width of the ports: of Zen 4 two loads of 32 bytes or one of 64, and one store of 32. `share` is that
//! of what the machine's memory modules could hand over, where it tells; the evidence says why where it does not. One
//! core alone has so many lines under way as its bandwidth times the latency, over 64 bytes (Little's law). Loads have
//! as many as the chains of `chase` show that do not wait for one another; what a read in order has beyond that,
//! prefetchers fetch, whose places no program can count: it is no bound, and there is none to be had here.
//!
//! # Source
//! McCalpin's STREAM (the four operations and the way of counting); lmbench's `bw_mem` (McVoy and Staelin 1996); CSE
//! 221 project reports: unrolled sums and stores of 256 MB, `memcpy` and `memset` of 16 MB.

mod field;
mod memory_module;
mod row;
mod walk;

use crate::case::{Case, Claim, Group, Place, Report, Rule, SetUp, Subject};
use crate::clock::{Clock, Delta, Ticks};
use crate::kit::parallel::{Parallelism, all_stayed, parallel};
use crate::platform::partner::{Kind, Task};
use crate::platform::{cpu, limit};
use crate::{Error, Result};
use field::{Field, Plan};
use row::{Row, level};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The group.
pub const GROUP: Group =
    Group { name: "bandwidth", manual: include_str!("bandwidth.rs"), version: 1, cases, fits: &[] };

/// What a smoke run takes of the larger sizes.
const SMOKE: usize = 2 << 20;

fn cases() -> Vec<Case> {
    row::rows().into_iter().map(case).collect()
}

fn case(row: Row) -> Case {
    let plan = row.plan();
    let (bytes, level) = (plan.moved(), level(plan.bytes));
    let alone = row.crowd.is_none();
    let set_up: SetUp = match row.crowd {
        None => Box::new(move |place: &Place| one(fitting(plan, place)?)),
        Some(crowd) => Box::new(move |place: &Place| all(crowd, fitting(plan, place)?, place)),
    };
    let (cycles, why) = level.predicted(&plan);
    let mut case = Case::new(row.name(), row.title(), set_up)
        .claim(Claim::Checked(
            "what was read has the sum of its closed form; what was to be written is there",
        ))
        .claim(Claim::Regime(no_faults))
        .predict(cycles, 0.0, why);
    case.needs.extend(row.needs());
    case = match row.crowd {
        None => case.claim(Claim::Linear).derive("bandwidth", Rule::Bandwidth(bytes)),
        Some(Parallelism::Count(count)) => {
            let all = count as u64 * bytes;
            case.claim(Claim::Counted(all_stayed)).derive("bandwidth", Rule::Bandwidth(all))
        }
        Some(Parallelism::All) => {
            case.claim(Claim::Counted(all_stayed)).derive("bandwidth", Rule::BandwidthOfAll(bytes))
        }
    };
    if level.is_shared() {
        case = case.shares_memory();
    }
    if alone {
        case = case.derive("cycle", Rule::BytesPerCycle(bytes));
    }
    match memory_module::limit() {
        Ok((of, _)) if level.is_memory() => {
            case.derive("share", Rule::Share { bytes, on_all: row.crowd == Some(Parallelism::All), of })
        }
        _ => case,
    }
}

/// A smoke run proves what it does on less. What goes over the whole by one call is not what its id says then.
fn fitting(plan: Plan, place: &Place) -> Result<Plan> {
    match place.scale {
        crate::case::Scale::Smoke if plan.bytes > SMOKE && plan.is_whole() => Err(Error::Missing(
            "smoke scale: one call for so much takes longer than it has; measured at default and full scale"
                .into(),
        )),
        crate::case::Scale::Smoke => Ok(Plan { bytes: plan.bytes.min(SMOKE), ..plan }),
        _ => Ok(plan),
    }
}

/// A subject, and what is to be said of it.
struct Told {
    inner: Box<dyn Subject>,
    words: Vec<String>,
}

impl Subject for Told {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self.inner.run(iterations, clock)
    }

    fn report(&self) -> Report {
        Report { evidence: self.words.clone(), ..self.inner.report() }
    }
}

fn told(inner: Box<dyn Subject>, plan: &Plan, field: String) -> Box<dyn Subject> {
    let mut words = vec![field];
    if level(plan.bytes).is_memory() {
        words.push(memory_module::limit().map_or_else(|why| why, |(_, words)| words));
    }
    Box::new(Told { inner, words })
}

fn one(plan: Plan) -> Result<Box<dyn Subject>> {
    limit::for_half(plan.bytes as u64).map_err(Error::Missing)?;
    let mut field = Field::new(plan)?;
    let words = field.words();
    let inner = move |n: u64, clock: &Clock| {
        let ticks = clock.time(|| field.run(n));
        field.prove().map_err(Error::Usage)?;
        Ok(ticks)
    };
    Ok(told(Box::new(inner), &plan, words))
}

/// A field for each of them, touched by the CPU that will use it: where memory has several homes it is that one's.
fn all(crowd: Parallelism, plan: Plan, place: &Place) -> Result<Box<dyn Subject>> {
    let cpus = crowd.cpus(place);
    limit::for_half((plan.bytes * (cpus.len() + 1)) as u64).map_err(Error::Missing)?;
    let fields: Rc<RefCell<Vec<Arc<Mutex<Field>>>>> = Rc::default();
    let make = |index: usize| {
        let field = match (place.cpus.here, cpus.get(index)) {
            (Some(here), Some(&there)) => {
                cpu::pin(there)?;
                let field = Field::new(plan);
                cpu::pin(here)?;
                field?
            }
            _ => Field::new(plan)?,
        };
        let field = Arc::new(Mutex::new(field));
        fields.borrow_mut().push(Arc::clone(&field));
        Ok(move |n: u64| {
            held(&field).run(n);
            0
        })
    };
    let proven = Rc::clone(&fields);
    let prove = move |_: u64| proven.borrow().iter().try_for_each(|field| held(field).prove());
    let inner = parallel(Kind::Thread, crowd, place, make, prove)?;
    let mut words: Vec<_> = fields.borrow().iter().map(|field| held(field).words()).collect();
    words.dedup();
    Ok(told(inner, &plan, format!("each {}", words.join(", and "))))
}

/// Nobody holds it but its thread in a batch and the measuring one between two.
fn held(field: &Mutex<Field>) -> MutexGuard<'_, Field> {
    field.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A fault inside costs more than a page's worth of moving. A kernel that moves pages to the CPU which uses them, or
/// makes them huge, causes some for a while.
fn no_faults(delta: &Delta, _: u64) -> std::result::Result<String, String> {
    match (delta.counted.minor_faults, delta.counted.major_faults) {
        (0, 0) => Ok("no page fault in it".into()),
        (minor, major) => Err(format!(
            "{minor} minor and {major} major page faults in a sample of memory that was touched before: the kernel \
             moves its pages"
        )),
    }
}

#[cfg(test)]
mod tests;
