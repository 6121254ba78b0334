//! Notes on a finished group, and its curves. The first note reports a core frequency that changed during cases. The time-stamp
//! counter has a constant rate and hides this; a chain of dependent additions, timed before and after each case, shows it.

use crate::case::Group;
use crate::environment::Fingerprint;
use crate::record::quantity::{NANOSECONDS, format_amount, format_count};
use crate::record::{Axis, CaseRecord, Curve, CurveRecord, GroupRun, Measured, Record};
use crate::statistic::fluid_cost::NOT_QUIET;
use crate::study::drawn_curve::{draw_curve, fit_cases, fit_sweep};

/// Relative difference between a case's two readings that is normal on a shared core of constant frequency.
const NOISE: f64 = 0.05;

/// A note if the frequency changed during some of the cases.
pub(super) fn frequency_note(run: &GroupRun) -> Option<String> {
    let pairs: Vec<(f64, f64)> = run.cases.iter().filter_map(|case| case.measured()?.core_hz).collect();
    let moved = pairs.iter().filter(|(before, after)| (after / before - 1.0).abs() > NOISE).count();
    let all = pairs.iter().flat_map(|(before, after)| [*before, *after]);
    let (low, high) = all.fold((f64::MAX, 0.0), |(low, high), hz| (hz.min(low), hz.max(high)));
    (moved > 0).then(|| {
        format!(
            "the core's frequency moved by more than 5 % during {moved} of {} cases: between {:.2} and {:.2} GHz",
            pairs.len(),
            low / 1e9,
            high / 1e9
        )
    })
}

// Load by other programs on other CPUs while memory-bound cases ran: one note per group.

/// The fewest busy CPUs that are worth a note. The driver and the kernel's own threads use less.
const LEAST_BUSY_CPUS: f64 = 0.2;

/// A note on the load by other programs while cases of this group ran, if there was any.
pub(super) fn neighbour_note(run: &GroupRun) -> Option<String> {
    let known: Vec<(&str, f64)> = run
        .cases
        .iter()
        .filter_map(|case| Some((case.id.as_str(), case.measured()?.contamination.busy_beside?)))
        .collect();
    let loaded = known.iter().filter(|(_, busy)| *busy >= LEAST_BUSY_CPUS).count();
    let (beside, most) = known.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (loaded > 0).then(|| {
        format!(
            "beside {loaded} of {} cases that wait for memory others kept other CPUs busy, {most:.1} of them beside \
             {beside}: they share the last cache and the memory; find the process with `top`, stop it, and run again",
            known.len()
        )
    })
}

// Detects load "latencies" that are bandwidth: a prefetcher that predicts the order of the loads fetches ahead, and a step
// then costs the transfer of a cache line, not the wait for it.

/// A case this many times faster than random order was prefetched.
const PREFETCHED_FACTOR: f64 = 2.0;
/// Name of the figure for bytes per second in a case of dependent loads.
const BANDWIDTH: &str = "bandwidth";

/// A note that names each case that is much faster than the random order over the same size.
pub(super) fn prefetch_note(run: &GroupRun) -> Option<String> {
    let disguised: Vec<_> = run.cases.iter().filter_map(|case| prefetched_case_sentence(run, case)).collect();
    (!disguised.is_empty()).then(|| {
        format!(
            "these are bandwidths and not latencies, because the prefetcher predicts the order of the loads: {}",
            disguised.join("; ")
        )
    })
}

fn prefetched_case_sentence(run: &GroupRun, case: &CaseRecord) -> Option<String> {
    let measured = case.measured()?;
    let bandwidth = measured.derived.iter().find(|figure| figure.name == BANDWIDTH)?;
    let size = case.id.rsplit('/').next()?;
    let random = format!("{}/random/{size}", run.name);
    let honest = run.cases.iter().find(|other| other.id == random)?.measured()?;
    let ns = |measured: &Measured| format_amount(measured.figure().estimate, NANOSECONDS);
    (honest.figure().estimate > PREFETCHED_FACTOR * measured.figure().estimate).then(|| {
        let gigabytes = format_count(bandwidth.value.estimate);
        format!("{} {} ({} GB/s), where {random} is {}", case.id, ns(measured), gigabytes, ns(honest))
    })
}

// Cases measured by displacement while the machine was not quiet, and other flags of their estimates.

/// Notes on cases measured by displacement: one for each flag of an estimate, and one that lists all cases that
/// ran while the machine was not quiet.
pub(super) fn unquiet_notes(run: &GroupRun) -> Vec<String> {
    let (mut notes, mut ids, mut most) = (Vec::new(), Vec::new(), 0.0_f64);
    for case in &run.cases {
        let Some(displaced) = case.measured().and_then(|measured| measured.displaced.as_ref()) else {
            continue;
        };
        if !displaced.quiet {
            ids.push(case.id.as_str());
            most = most.max(displaced.others);
        }
        // The flag that says how the machine was not quiet stays in the record; the note below sums these up.
        let flags = displaced.flags.iter().filter(|flag| !flag.starts_with(NOT_QUIET));
        notes.extend(flags.map(|flag| format!("{}: {flag}", case.id)));
    }
    if !ids.is_empty() {
        notes.push(format!(
            "{NOT_QUIET} in {} cases (other tasks had up to {:.0} % of the median run): they have no estimate by the \
             paper's formula: {}",
            ids.len(),
            100.0 * most,
            ids.join(", ")
        ));
    }
    notes
}

// The curves of a finished group, and lines through series of its cases.

/// Adds the curves to a record of these groups that was written before curves were stored: they are computed from the
/// cases alone.
pub fn add_missing_curves(record: &mut Record, groups: &[Group]) {
    for run in record.groups.iter_mut().filter(|run| run.curves.is_empty()) {
        if let Some(group) = groups.iter().find(|group| group.name == run.name) {
            run.curves = draw_curves(group.curves, run, &record.fingerprint);
        }
    }
}

/// Adds the curves and the fitted lines that the group asks for, and those of its sweeps.
pub(super) fn add_series(run: &mut GroupRun, group: &Group, fingerprint: &Fingerprint) {
    let sweeps = sweeps(group);
    run.fits = group.fits.iter().filter_map(|f| fit_cases(f.step, f.prefix, &run.cases)).collect();
    run.fits.extend(sweeps.iter().filter_map(|(prefix, of)| fit_sweep(of, prefix, &run.cases)));
    run.curves = draw_curves(group.curves, run, fingerprint);
    for (prefix, parameter) in sweeps {
        // A curve needs a static prefix, as those of a group are constants: a few bytes are leaked once per run.
        let prefix: &'static str = prefix.leak();
        let title = prefix.split_once('/').map_or(prefix, |(_, name)| name.trim_end_matches('/'));
        let curve = Curve::new(prefix, title, Axis::Count(parameter));
        run.curves.extend(draw_curve(&curve, run, fingerprint));
    }
}

fn draw_curves(curves: &[Curve], run: &GroupRun, fingerprint: &Fingerprint) -> Vec<CurveRecord> {
    curves.iter().filter_map(|curve| draw_curve(curve, run, fingerprint)).collect()
}

/// Each sweep of a group as the common beginning of its ids and the name of its parameter.
fn sweeps(group: &Group) -> Vec<(String, &'static str)> {
    let mut sweeps = Vec::new();
    for case in (group.cases)() {
        let id = group.id(&case);
        let sweep = case.parameter.zip(id.rfind('/')).map(|(of, at)| (id[..=at].to_owned(), of));
        sweeps.extend(sweep.filter(|sweep| !sweeps.contains(sweep)));
    }
    sweeps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CaseRecord, Contamination, Derived, Interval, Measured, Outcome, fixture_run};

    fn run_with(core_hz: &[(f64, f64)]) -> GroupRun {
        let measured = |pair| Measured { core_hz: Some(pair), ..Measured::default() };
        let case = |pair: &(f64, f64)| fixture_run::measured_case("call/u64/3", measured(*pair));
        GroupRun { name: "call".into(), cases: core_hz.iter().map(case).collect(), ..GroupRun::default() }
    }

    #[test]
    fn a_frequency_that_ramps_is_noted_and_a_steady_one_is_not() {
        assert_eq!(frequency_note(&run_with(&[(3.0e9, 3.1e9), (3.1e9, 3.0e9)])), None);
        let note = frequency_note(&run_with(&[(3.0e9, 3.0e9), (3.0e9, 3.7e9)])).expect("a ramp");
        assert!(note.contains("1 of 2 cases: between 3.00 and 3.70 GHz"), "{note}");
    }

    #[test]
    fn a_group_with_busy_neighbours_gets_one_note_and_a_quiet_group_none() {
        let beside = |id: &str, busy_beside| {
            let contamination = Contamination { busy_beside, ..Contamination::default() };
            fixture_run::measured_case(id, Measured { contamination, ..Measured::default() })
        };
        let skipped = CaseRecord { outcome: Outcome::Skipped("no".into()), ..beside("a/skipped", Some(1.0)) };
        let cases = vec![beside("a/quiet", Some(0.03)), beside("a/call", None), skipped];
        let mut run = GroupRun { cases, ..GroupRun::default() };
        assert_eq!(neighbour_note(&run), None);
        run.cases.extend([beside("a/read", Some(1.02)), beside("a/write", Some(0.5))]);
        let note = neighbour_note(&run).expect("a note");
        assert!(note.contains("2 of 3 cases") && note.contains("1.0 of them beside a/read"), "{note}");
    }

    fn case(id: &str, ns: f64, derived: &[f64]) -> CaseRecord {
        let at = Interval::exactly;
        let figure = |&value: &f64| Derived { name: BANDWIDTH.into(), unit: "GB/s".into(), value: at(value) };
        let derived = derived.iter().map(figure).collect();
        let measured = Measured { median: at(ns), derived, ..Measured::default() };
        fixture_run::measured_case(id, measured)
    }

    fn note_on_cases(cases: Vec<CaseRecord>) -> Option<String> {
        prefetch_note(&GroupRun { name: "chase".into(), cases, ..GroupRun::default() })
    }

    #[test]
    fn a_stride_that_is_prefetched_is_named_beside_the_random_order() {
        let random = case("chase/random/256MiB", 110.0, &[]);
        let stride = case("chase/stride-64/256MiB", 3.0, &[21.3]);
        let note = note_on_cases(vec![random, stride]).expect("a note");
        assert!(note.contains("chase/stride-64/256MiB 3.000 ns (21.3"), "{note}");
        assert!(note.contains("where chase/random/256MiB is 110.0 ns"), "{note}");
    }

    #[test]
    fn a_case_is_not_named_if_it_is_as_slow_as_random_lacks_that_case_or_moves_no_bytes() {
        let random = || case("chase/random/256MiB", 110.0, &[]);
        assert_eq!(note_on_cases(vec![random(), case("chase/stride-4096/256MiB", 100.0, &[0.6])]), None);
        assert_eq!(note_on_cases(vec![random(), case("chase/stride-64/16KiB", 1.0, &[60.0])]), None);
        assert_eq!(note_on_cases(vec![random(), case("chase/random-huge/256MiB", 9.0, &[])]), None);
    }
}
