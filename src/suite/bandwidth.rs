//! # What is timed
//! Processing memory in order: `read` adds up its words, `write` stores a constant, `copy` copies one half to the
//! other, `update` adds to each word in place; `scale`, `add` and `triad` are STREAM's. The last part of an id is the
//! size of all arrays together. An iteration moves 16 KiB (15 with three arrays), counting reads and writes alike; in
//! larger arrays each iteration takes the next part, and starts over at the end. The loops use the widest vectors of the machine; `scalar`,
//! `sse2`, `avx2`, `avx512` and `neon` name others. `nt` stores past the caches. `memcpy` and `memset` are the C
//! library's, `rep-movsb` and `rep-stosb` the processor's own loops: for these four an iteration is one call for the
//! whole size. `strided-256MiB` visits the lines of 256 MiB a stride apart, then those between, until every byte was read or
//! written. Above 16 MiB STREAM's three prefetch the lines that they will write where that helps (Intel), and `copy-nt`
//! alternates between four pages and prefetches what it will read, if the processor can. `all` runs a thread on every
//! CPU and `two` a thread on each of two, each on memory of its own of that size; the time runs from a common signal until
//! the last thread has finished. A fence, which is timed, waits until the stores are visible to all CPUs. `read-node-256MiB/N`
//! reads the memory of NUMA node N from the CPU that `--cpu` names.
//!
//! # What is not
//! Mapping, first touch by the CPU that will use the memory, filling, and verifying the results.
//!
//! # How we know
//! The words that are read are consecutive numbers: each batch's sum must be that of the closed form. At set-up every
//! written word is verified; then, before each batch, some words ahead are overwritten with wrong values, and afterwards
//! must hold the operation's result. A loop that does not run, or skips a word, ends the case. There are no page faults in the
//! timed part. Up to 32 KiB, and in `base-pages`, the memory is in base pages; everything else is in transparent huge
//! pages of 2 MiB, for each thread: `/proc/self/smaps` must show them, or the case is skipped. The evidence names the
//! vectors.
//!
//! # What fools it
//! Zeroes: Zen 4 performs non-temporal stores of zeroes more than three times as fast as those of other values, and
//! `memset` to zero of a large size uses them. Hence the pattern, and `zeroes` for comparison. Large caches: a size
//! is not a cache level; the curve shows where a level ends. Dirty lines: the writes of a batch evict the dirty lines of
//! the one before, so their write-back is paid for, unless all of them are read in between: hence few words are
//! verified. Neighbours: a note below the table names programs that kept other CPUs busy meanwhile; but on a shared
//! host other guests use the memory too, and no counter of this machine shows it. Chiplets: those of EPYC write to
//! memory over a link of some 28 GB/s that all their cores share; if a hypervisor moves the virtual CPUs, two of them
//! on one chiplet write together as much as one alone, and twice as much on two.
//!
//! # Reading the number
//! A stride of 64 bytes reads in order; the value to which `strided` falls is a core's bandwidth without prefetchers. These
//! recognise strides within a page, so the largest strides leave the page with each line; the other line of a pair follows
//! half a round later.
//! `bandwidth` counts the program's bytes, as STREAM does: a copy reads and writes, and counts twice what mbw and
//! perf count. A processor that must read a line before it can write a part of it moves more than that: this
//! read-for-ownership is not counted. If stores past the caches are twice as fast, that is what they save; a core
//! that recognises writes of whole lines may save it by itself. `cycle` is bytes per core cycle, to be compared with
//! the width of the ports: of Zen 4 two loads of 32 bytes or one of 64, and one store of 32. `share` is the fraction
//! of what the machine's memory modules could transfer, if their speed is known; if not, the evidence says why. The
//! lines that one core has outstanding are its bandwidth times the latency, over 64 bytes (Little's law). Loads have
//! as many as the independent chains of `chase` show. A read in order has more, because prefetchers fetch lines, and no
//! program can count these lines: no bound is given here.
//!
//! # Source
//! perf bench `numa mem`; Intel's Memory Latency Checker (nodes against nodes); McCalpin's STREAM (the four operations and the way of counting); lmbench's `bw_mem` (McVoy and Staelin 1996); CSE
//! 221 project report (unrolled sums and stores of 256 MB), CSC501 project report (`memcpy` and `memset` of 8 and 16 MB).

mod strided;
mod variant;
mod workload;

use crate::environment::memory_module;
use crate::kit::contract::*;
use crate::kit::evidence::WithEvidence;
use crate::kit::parallel::{Parallelism, all_partners_stayed, parallel_subject};
use crate::platform::partner::Kind;
use crate::platform::{cpu, limit, numa};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use variant::Variant;
use variant::{Level, Plan};
use workload::Workload;

pub const GROUP: Group = Group::new("bandwidth", include_str!("bandwidth.rs"), cases)
    .curves(&[
        one_cpu_curve("bandwidth/read/", "read"),
        one_cpu_curve("bandwidth/write/", "write"),
        one_cpu_curve("bandwidth/copy/", "copy"),
        one_cpu_curve("bandwidth/write-nt/", "write past the caches"),
        one_cpu_curve("bandwidth/memcpy/", "memcpy"),
        one_cpu_curve("bandwidth/memset/", "memset"),
        one_cpu_curve("bandwidth/triad/", "triad"),
        strided_curve("bandwidth/read-strided-256MiB/", "read"),
        strided_curve("bandwidth/write-strided-256MiB/", "write"),
        all_cpus_curve("bandwidth/read-all/", "read"),
        all_cpus_curve("bandwidth/write-all/", "write"),
        all_cpus_curve("bandwidth/copy-all/", "copy"),
    ])
    // Since version 2 STREAM's three prefetch on Intel's processors only; since 3 a sample is whole rounds of the arrays.
    .version(3)
    .headlines(&[
        Headline::new(37, "read/256MiB", "memory read").with_figure("bandwidth").as_answer(),
        Headline::new(38, "write/256MiB", "memory written").with_figure("bandwidth"),
        Headline::new(39, "memcpy/256MiB", "memcpy").with_figure("bandwidth"),
    ]);

/// A curve of one CPU's bandwidth.
const fn one_cpu_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("size")).with_figure("bandwidth")
}

/// A curve of one CPU's bandwidth along the stride.
const fn strided_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("stride"))
        .with_figure("bandwidth")
        .with_chart("bandwidth by stride")
}

/// A curve of the bandwidth of all CPUs together.
const fn all_cpus_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("size on each CPU"))
        .with_figure("bandwidth")
        .with_chart("bandwidth of all CPUs")
}

/// The largest size of a smoke run, bytes.
const SMOKE: usize = 2 << 20;

fn cases() -> Vec<Case> {
    variant::variants().into_iter().map(case_of_variant).chain(strided::cases()).collect()
}

fn case_of_variant(variant: Variant) -> Case {
    let plan = variant.plan();
    let (bytes, crowd, node) = (plan.bytes_moved(), variant.row.crowd, variant.node);
    let set_up = match crowd {
        None => set_up(move |place| single_workload(plan_at_scale(plan, place)?, node)),
        Some(crowd) => set_up(move |place| parallel_workloads(crowd, plan_at_scale(plan, place)?, place)),
    };
    let (cycles, why) = plan.predicted_cycles();
    let mut case = Case::new(variant.id(), variant.title(), set_up)
        .claim(Claim::Checked(
            "what was read has the sum of its closed form; what was to be written is there",
        ))
        .claim(Claim::Regime(claim_no_faults))
        .lap_length(plan.chunk_count() as u64)
        .predict(cycles, 0.0, why);
    case.needs.extend(variant.needs());
    case = match crowd {
        None => case.claim(Claim::Linear).derived_figure("bandwidth", Rule::Bandwidth(bytes)),
        Some(Parallelism::Count(count)) => {
            let all = count as u64 * bytes;
            case.claim(Claim::Counted(all_partners_stayed)).derived_figure("bandwidth", Rule::Bandwidth(all))
        }
        Some(Parallelism::All) => case
            .claim(Claim::Counted(all_partners_stayed))
            .derived_figure("bandwidth", Rule::BandwidthOfAll(bytes)),
    };
    if plan.memory_level().is_shared() {
        case = case.shares_memory();
    }
    if crowd.is_none() {
        case = case.derived_figure("cycle", Rule::BytesPerCycle(bytes));
    }
    match memory_module::bandwidth_limit() {
        Ok((of, _)) if plan.memory_level() == Level::Memory => {
            case.derived_figure("share", Rule::Share { bytes, on_all: crowd == Some(Parallelism::All), of })
        }
        _ => case,
    }
}

/// The plan at the scale of `place`: a smoke run does the same on less memory. A case with one call for a whole
/// array would then not be what its id says, and is skipped.
fn plan_at_scale(plan: Plan, place: &Place) -> Result<Plan> {
    match place.scale {
        Scale::Smoke if plan.bytes > SMOKE && plan.calls_whole_array() => Err(Error::Missing(
            "smoke scale: one call for so much takes longer than it has; measured at default and full scale"
                .into(),
        )),
        Scale::Smoke => Ok(Plan { bytes: plan.bytes.min(SMOKE), ..plan }),
        _ => Ok(plan),
    }
}

/// The sentences of evidence: that of the workload and, for arrays in main memory, that on the memory modules.
fn evidence(plan: &Plan, workload: String) -> Vec<String> {
    let limit = (plan.memory_level() == Level::Memory)
        .then(|| memory_module::bandwidth_limit().map_or_else(|why| why, |(_, sentence)| sentence));
    [workload].into_iter().chain(limit).collect()
}

/// A workload on the measuring CPU, in the nearest memory or in that of a node.
fn single_workload(plan: Plan, node: Option<usize>) -> Result<impl Subject> {
    limit::check_half_of_memory(plan.bytes as u64).map_err(Error::Missing)?;
    let mut workload = match node {
        None => Workload::new(plan)?,
        Some(node) => {
            let mut workload = numa::call_on_one_of_several(node, || Workload::new(plan))??;
            numa::verify_node(workload.all_bytes(), node)?;
            workload
        }
    };
    let description = workload.description();
    let inner = move |n: u64, clock: &Clock| {
        let ticks = clock.time(|| workload.run_batch(n));
        workload.verify_last_batch().map_err(Error::Disproved).map(|()| ticks)
    };
    Ok(WithEvidence::new(inner, evidence(&plan, description)))
}

/// A workload for each CPU, first touched by that CPU, so that its memory is on that CPU's node.
fn parallel_workloads(crowd: Parallelism, plan: Plan, place: &Place) -> Result<impl Subject + use<>> {
    let cpus = crowd.partner_cpus(place);
    limit::check_half_of_memory((plan.bytes * (cpus.len() + 1)) as u64).map_err(Error::Missing)?;
    let workloads: Rc<RefCell<Vec<Arc<Mutex<Workload>>>>> = Rc::default();
    let make = |index: usize| {
        let workload = match (place.cpus.here, cpus.get(index)) {
            (Some(here), Some(&there)) => {
                cpu::pin_thread(there)?;
                let workload = Workload::new(plan);
                cpu::pin_thread(here)?;
                workload?
            }
            _ => Workload::new(plan)?,
        };
        let workload = Arc::new(Mutex::new(workload));
        workloads.borrow_mut().push(Arc::clone(&workload));
        Ok(move |n: u64| {
            lock_workload(&workload).run_batch(n);
            0
        })
    };
    let proven = Rc::clone(&workloads);
    let prove = move |_: u64| {
        proven.borrow().iter().try_for_each(|workload| lock_workload(workload).verify_last_batch())
    };
    let inner = parallel_subject(Kind::Thread, crowd, place, make, prove)?;
    let mut descriptions: Vec<_> =
        workloads.borrow().iter().map(|workload| lock_workload(workload).description()).collect();
    descriptions.dedup();
    Ok(WithEvidence::new(inner, evidence(&plan, format!("each {}", descriptions.join(", and ")))))
}

/// Locks a workload, without contention: during a batch only its thread takes the lock, otherwise only the measuring thread.
fn lock_workload(workload: &Mutex<Workload>) -> MutexGuard<'_, Workload> {
    workload.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The claim that there was no page fault: one costs more than reading or writing a page. A kernel that migrates pages to
/// the CPU that uses them, or makes them huge, causes some faults for a while.
fn claim_no_faults(delta: &Delta, _: u64) -> Judged {
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
