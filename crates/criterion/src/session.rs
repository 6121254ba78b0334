//! The pass of this process over a bench target's functions, and their requests that have no effect.

use crate::operation::Operation;
use criterion::Throughput;
use criterion::measurement::Measurement;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use syscost_engine::case::Lent;
use syscost_engine::driver::end_process;
use syscost_engine::exit::Exit;
use syscost_engine::harness::{InPlace, Offer, Work};
use syscost_engine::record::baseline::criterion_directory;
use syscost_platform::inert::is_hostile;

/// The maximum length of a benchmark's name, bytes. With the name of its bench target it makes an id of at most 200 bytes.
const LONGEST: usize = 140;

enum State {
    Waiting,
    Running(Box<Session>),
    Over,
}

struct Session {
    target: &'static str,
    /// The pass; `None` after its end.
    pass: Option<InPlace>,
    /// Criterion's directories of all names so far, since two benchmarks never share one.
    directories: BTreeSet<PathBuf>,
    settings: BTreeSet<&'static str>,
    /// The number of files that were open before the first benchmark function.
    open_files: usize,
}

thread_local! {
    static STATE: RefCell<State> = const { RefCell::new(State::Waiting) };
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.pass.is_some() && !self.directories.is_empty() {
            syscost_engine::driver::report_error(
                "benchmarks were declared and not measured: the bench's `main` must call `Criterion::final_summary` last",
            );
        }
    }
}

/// Begins the pass, once in a process. A `main` that is written by hand has the name of the program as its target.
pub(crate) fn start() {
    start_as(None);
}

fn start_as(crate_name: Option<&'static str>) {
    let is_waiting = STATE.with_borrow(|state| matches!(state, State::Waiting));
    if is_waiting {
        let target = crate_name.unwrap_or_else(program_name);
        let pass = Some(InPlace::start(target).unwrap_or_else(|exit| end_process(exit)));
        let open_files = count_entries("/proc/self/fd");
        let (directories, settings) = (BTreeSet::new(), BTreeSet::new());
        STATE.set(State::Running(Box::new(Session { target, pass, directories, settings, open_files })));
    }
}

/// Notes a setting that has no effect.
pub(crate) fn note_setting(name: &'static str) {
    STATE.with_borrow_mut(|state| {
        if let State::Running(session) = state {
            session.settings.insert(name);
        }
    });
}

/// Offers a benchmark to the run.
pub(crate) fn offer<M: Measurement + 'static>(
    id: &str,
    throughput: Option<&Throughput>,
    operation: Operation<'_, M>,
) {
    // The session is taken out of the state, since a benchmark may itself make a `Criterion`.
    let State::Running(mut session) = STATE.replace(State::Over) else { return };
    let offer = Offer { name: session.unique_name(id), work: throughput.map(work).unwrap_or_default() };
    let (case, operation) = (offer.to_case(), RefCell::new(operation));
    let open_files = session.open_files;
    if let Some(pass) = &mut session.pass {
        pass.offer(offer, Lent(&operation), |clock, proven| {
            operation.borrow_mut().describe(case, clock, proven, open_files)
        });
    }
    STATE.set(State::Running(session));
}

/// Ends the pass: measures, or ends the measuring process. `ends_here` means that no function of the bench is left on the
/// stack.
pub(crate) fn finish(ends_here: bool) {
    let State::Running(mut session) = STATE.replace(State::Over) else { return };
    let notes = session.notes();
    let exit = session.pass.take().map_or(Exit::Success, |pass| pass.finish(&notes, ends_here));
    if exit != Exit::Success {
        end_process(exit);
    }
}

/// The `main` of a bench target, which is the crate `crate_name`. The name of the program would be less reliable: a
/// comparison links a build several times, under other names.
#[doc(hidden)]
pub fn run_groups(crate_name: &'static str, groups: &[&dyn Fn()]) {
    start_as(Some(crate_name));
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| groups.iter().for_each(|group| group()))) {
        let State::Running(mut session) = STATE.replace(State::Over) else { resume_unwind(payload) };
        if let Some(pass) = session.pass.take() {
            end_process(pass.break_off(payload));
        }
    }
    finish(true);
}

/// The name of the program without Cargo's hash.
fn program_name() -> &'static str {
    let program = std::env::current_exe().unwrap_or_default();
    let stem = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_hash = |hash: &str| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = stem.rsplit_once('-').filter(|(_, hash)| is_hash(hash)).map_or(&*stem, |(name, _)| name);
    Box::leak(acceptable(name, LONGEST).into_boxed_str())
}

/// The number of entries in a directory of `/proc`; 0 if it cannot be read.
pub(crate) fn count_entries(directory: &str) -> usize {
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

/// A name that a record can hold: without control characters, and not longer than `longest` bytes.
fn acceptable(name: &str, longest: usize) -> String {
    let mut name = name.replace(|c: char| c.is_control() || is_hostile(c), "_");
    let end = (0..=longest.min(name.len())).rev().find(|&end| name.is_char_boundary(end));
    name.truncate(end.unwrap_or_default());
    if name.is_empty() { "_".into() } else { name }
}

/// The work of an iteration: the bytes or elements that it processes.
fn work(throughput: &Throughput) -> Vec<Work> {
    match *throughput {
        Throughput::Bits(bits) => vec![Work::Bytes(bits / 8)],
        Throughput::Bytes(bytes) | Throughput::BytesDecimal(bytes) => vec![Work::Bytes(bytes)],
        Throughput::Elements(elements) => vec![Work::Elements(elements)],
        Throughput::ElementsAndBytes { elements, bytes } => {
            vec![Work::Bytes(bytes), Work::Elements(elements)]
        }
    }
}

impl Session {
    /// The name under which a benchmark is stored. It gets a number if another benchmark has the same name or directory.
    fn unique_name(&mut self, id: &str) -> String {
        let name = acceptable(id, LONGEST);
        let numbered = |number| if number == 1 { name.clone() } else { format!("{name} #{number}") };
        let mut names = (1..).map(numbered);
        let is_free =
            |name: &String| self.directories.insert(criterion_directory(&format!("{}/{name}", self.target)));
        names.find(is_free).unwrap_or(name)
    }

    /// The notes that are printed at the end of a run.
    fn notes(&self) -> Vec<String> {
        let names: Vec<_> = self.settings.iter().copied().collect();
        let note = format!("accepted, without effect: {}", names.join(", "));
        (!names.is_empty()).then_some(note).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::case::Rule;

    #[test]
    fn an_unacceptable_name_is_changed_and_cut_between_characters() {
        assert_eq!(acceptable("two\nlines\u{202e}", LONGEST), "two_lines_");
        assert_eq!(acceptable("ééé", 5), "éé");
        assert_eq!(acceptable("", LONGEST), "_");
    }

    #[test]
    fn a_throughput_becomes_a_rate_of_bytes_or_elements() {
        let rules = |throughput| {
            let offer = Offer { name: "it".into(), work: work(&throughput) };
            offer.to_case().derived.into_iter().map(|figure| figure.rule).collect::<Vec<_>>()
        };
        assert_eq!(rules(Throughput::Bits(64)), [Rule::Bandwidth(8)]);
        assert_eq!(rules(Throughput::BytesDecimal(7)), [Rule::Bandwidth(7)]);
        assert_eq!(
            rules(Throughput::ElementsAndBytes { elements: 3, bytes: 5 }),
            [Rule::Bandwidth(5), Rule::Elements(3)]
        );
    }
}
