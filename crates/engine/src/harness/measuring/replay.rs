//! Gives Criterion the samples of all executions of a case at once, so that its files, its report and its comparisons cover the
//! whole run, in the order in which the samples were measured.

use super::criterion_drive::criterion_without_plots;
use super::{Counted, CycleTime, EventCount};
use crate::case::Group;
use crate::clock::{Clock, ClockScale};
use crate::driver::{Arguments, Message, Samples, Sender, Work, criterion_home};
use crate::error::Result;
use crate::platform::output::Silence;
use crate::platform::plain_file;
use crate::record::baseline::criterion_name;
use crate::record::quantity::is_time_unit;
use crate::record::store::{LIMIT, replace_file};
use crate::record::{ClockRun, baseline};
use criterion::measurement::{Measurement, ValueFormatter};
use criterion::{SamplingMode, Throughput};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

/// Criterion's resamples: its own default is ten times as many, and the whole suite waits for them.
const RESAMPLES: usize = 10_000;

/// Ends Criterion's warm-up after its first call.
const ONE_CALL: Duration = Duration::from_nanos(1);

/// The beginning of Criterion's progress lines. These are dropped, because the samples were measured before.
const PROGRESS: &str = "Benchmarking ";

/// The name of a baseline that cannot exist: names have no path separator.
const NO_BASELINE: &str = "no/baseline";

/// Has Criterion write its files for these cases.
///
/// # Errors
/// The unit cannot be measured, or the driver has ended.
pub(super) fn write(
    group: &Group,
    (cases, clock): (&[Samples], Option<ClockScale>),
    unit: &str,
    arguments: &Arguments,
    sender: &mut Sender,
) -> Result<()> {
    if is_time_unit(unit) {
        let clock = clock.map_or_else(Clock::start_up, Clock::with_scale);
        replay_cases(group, cases, Rc::new(CycleTime::with_clock(Rc::new(clock))), arguments, sender)?;
    } else {
        replay_cases(group, cases, Rc::new(EventCount::open(unit)?), arguments, sender)?;
    }
    sender.send(&Message::End(ClockRun::default()))
}

fn replay_cases<M: Counted>(
    group: &Group,
    cases: &[Samples],
    shown_as: Rc<M>,
    arguments: &Arguments,
    sender: &mut Sender,
) -> Result<()> {
    // With `--verbose` Criterion's report is printed when it is complete.
    let silence = if arguments.loud { Silence::with_replay(PROGRESS) } else { Silence::new() }?;
    for case in cases {
        // The driver assumes that a process which is silent for minutes hangs.
        sender.send(&Message::Begin(format!("{}/{}", group.name, case.name)))?;
        // If Criterion panics on a case, the driver notices that its files are missing; the other cases get theirs.
        let _ = catch_unwind(AssertUnwindSafe(|| replay_case(group, case, Rc::clone(&shown_as), arguments)));
    }
    drop(silence);
    Ok(())
}

fn replay_case<M: Counted>(group: &Group, case: &Samples, shown_as: Rc<M>, arguments: &Arguments) {
    let criterion = criterion_without_plots().nresamples(RESAMPLES).output_directory(&criterion_home());
    let mut criterion = criterion.configure_from_args().with_measurement(Recorded(shown_as));
    if !prepare_baseline(&format!("{}/{}", group.name, case.name), arguments) {
        // With a baseline that does not exist, and `strict` off, Criterion compares nothing.
        criterion = criterion.retain_baseline(NO_BASELINE.into(), false);
    }
    // No filter: the driver has already chosen the cases, by their own names.
    let mut criterion = criterion.with_filter("");
    let mut of_group = criterion.benchmark_group(criterion_name(group.name));
    // Set on the group, whose settings override the command line: the samples exist already.
    of_group.sampling_mode(SamplingMode::Flat).sample_size(case.values.len());
    of_group.warm_up_time(ONE_CALL).measurement_time(Duration::from_secs(1));
    if let Some(work) = case.work {
        of_group.throughput(match work {
            Work::Bytes(bytes) => Throughput::Bytes(bytes),
            Work::Elements(elements) => Throughput::Elements(elements),
        });
    }
    // The first call is Criterion's warm-up. It gets the first value, which the first sample gets again.
    let mut values = case.values.first().into_iter().chain(case.values.iter().cycle());
    of_group.bench_function(criterion_name(&case.name), |b| {
        b.iter_custom(|iterations| values.next().map_or(0.0, |value| value * iterations as f64));
    });
    of_group.finish();
    let places = arguments.save.iter().map(String::as_str).chain(["new"]);
    places.for_each(|place| restore_names(group.name, &case.name, place));
}

/// Writes the case's own names into a file of Criterion's, where Criterion replaced characters, for tools that read these files.
fn restore_names(group: &str, name: &str, place: &str) {
    if criterion_name(group) == group && criterion_name(name) == name {
        return;
    }
    let id = format!("{group}/{name}");
    let file = criterion_home().join(baseline::criterion_directory(&id)).join(place).join("benchmark.json");
    // The driver reports a file that is missing or not Criterion's.
    let Some(mut names) =
        plain_file::read(&file, LIMIT).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok())
    else {
        return;
    };
    for (key, text) in [("group_id", group), ("function_id", name), ("full_id", &id), ("title", &id)] {
        if let Some(field) = Value::get_mut(&mut names, key) {
            *field = text.into();
        }
    }
    let _ = replace_file(&file, names.to_string().as_bytes());
}

/// Whether Criterion can compare this case with its baseline. An unreadable baseline is removed if this run
/// replaces it; if the user named it with `--baseline`, it stays, and the driver has reported it.
fn prepare_baseline(id: &str, arguments: &Arguments) -> bool {
    let Some(name) = arguments.compare.as_ref().or(arguments.save.as_ref()) else { return true };
    let saved = criterion_home().join(baseline::criterion_directory(id)).join(name);
    if !saved.exists() || baseline::is_readable_baseline(&saved) {
        return true;
    }
    arguments.compare.is_none() && std::fs::remove_dir_all(&saved).is_ok()
}

/// Criterion measurement of values that were measured before. They are formatted as by the measurement `M`.
struct Recorded<M>(Rc<M>);

impl<M: Counted> Measurement for Recorded<M> {
    type Intermediate = ();
    type Value = f64;

    fn start(&self) {}

    fn end(&self, (): ()) -> f64 {
        0.0
    }

    fn add(&self, a: &f64, b: &f64) -> f64 {
        a + b
    }

    fn zero(&self) -> f64 {
        0.0
    }

    fn to_f64(&self, value: &f64) -> f64 {
        *value
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        self.0.formatter()
    }
}
