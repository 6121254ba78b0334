//! The measurements, one module each: `<group>.rs` is the manual and the cases, `<group>/` its operations.
//!
//! Groups do not use each other. To delete one, delete its module, its bench target and its row in [`GROUPS`].

pub mod bandwidth;
pub mod cached_read;
pub mod call;
pub mod chase;
pub mod clock_read;
pub mod container;
pub mod contention;
pub mod context_switch;
pub mod core_to_core;
pub mod counters;
pub mod coverage;
pub mod direct_read;
pub mod displacement;
pub mod empty_loop;
pub mod file_ops;
pub mod fork;
pub mod getdents;
pub mod instruction;
pub mod known_work;
pub mod lock;
pub mod mapping;
pub mod messaging;
pub mod page_fault;
pub mod ping_pong;
pub mod remote_read;
pub mod scale;
pub mod signal;
pub mod socket_bandwidth;
pub mod socket_connect;
pub mod socket_round_trip;
pub mod stolen_time;
pub mod syscall;
pub mod technique;
pub mod thread;
pub mod tracing;
pub mod wait;
pub mod wake_up;

use crate::case::{Group, SetUp};
use crate::kit::operation_table::{Omit, Row};

/// The groups of this crate, in the order in which they run.
pub const GROUPS: &[Group] = &[
    clock_read::GROUP,
    empty_loop::GROUP,
    known_work::GROUP,
    instruction::GROUP,
    call::GROUP,
    syscall::GROUP,
    chase::GROUP,
    bandwidth::GROUP,
    page_fault::GROUP,
    mapping::GROUP,
    ping_pong::GROUP,
    context_switch::GROUP,
    core_to_core::GROUP,
    messaging::GROUP,
    wake_up::GROUP,
    stolen_time::GROUP,
    lock::GROUP,
    scale::GROUP,
    fork::GROUP,
    thread::GROUP,
    signal::GROUP,
    wait::GROUP,
    socket_round_trip::GROUP,
    socket_bandwidth::GROUP,
    socket_connect::GROUP,
    direct_read::GROUP,
    cached_read::GROUP,
    file_ops::GROUP,
    contention::GROUP,
    remote_read::GROUP,
    displacement::GROUP,
    counters::GROUP,
    technique::GROUP,
    getdents::GROUP,
    tracing::GROUP,
    container::GROUP,
];

/// The group of this name.
pub fn find_group(name: &str) -> Option<&'static Group> {
    GROUPS.iter().find(|group| group.name == name)
}

/// The tables whose rows can omit their operation, each with its group.
const TABLES: [(&str, &[Row]); 4] = [
    ("container", container::ROWS),
    ("mapping", mapping::page_state::ROWS),
    ("tracing", tracing::CONFINED),
    ("tracing", tracing::PROBED),
];

/// The set-up of a table's row without its operation: a dishonest case for the self-test. `None` if no table has the id.
pub fn left_out_set_up(id: &str) -> Option<SetUp> {
    let (group, name) = id.split_once('/')?;
    let rows = TABLES.iter().filter(|(of, _)| *of == group).flat_map(|(_, rows)| *rows);
    rows.into_iter().find(|row| row.name == name).map(|row| row.set_up(Omit::Operation))
}

#[cfg(test)]
#[path = "../fixtures/example_group/priority.rs"]
mod priority;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Cpus, Place, Scale};

    #[test]
    fn the_group_that_the_readme_adds_is_printed_as_it_compiles_and_runs() {
        let readme: String =
            include_str!("../README.md").lines().map(|line| line.trim_start().to_owned() + "\n").collect();
        for file in [priority::GROUP.manual, include_str!("../fixtures/example_group/operation.rs")] {
            let printed = file.lines().filter(|line| !line.contains("The example of README.md"));
            let printed: String = printed.map(|line| line.trim_start().to_owned() + "\n").collect();
            assert!(readme.contains(&printed), "README.md lacks this text:\n{printed}");
        }
        let place = Place { scratch: std::env::temp_dir(), scale: Scale::Smoke, cpus: Cpus::default() };
        let mut subject = ((priority::GROUP.cases)()[0].set_up)(&place).expect("set up");
        assert!(subject.run(3, &crate::clock::Clock::start_up()).expect("three calls").0 > 0);
    }

    /// The expected ids of this architecture, one on each line. `fixtures/ids.txt` holds those of x86-64. The other lists hold the
    /// differences of AArch64 and RISC-V: ids with `-` are absent, and ids with `+` stand at the beginning of their group. x86-64
    /// also checks that every `-` of AArch64 is in the first list, so that a rename in one list only is noticed on both.
    fn expected_ids() -> String {
        let mut ids: Vec<_> = include_str!("../fixtures/ids.txt").lines().collect();
        let differences = if cfg!(target_arch = "riscv64") {
            include_str!("../fixtures/ids-riscv64.txt")
        } else {
            include_str!("../fixtures/ids-aarch64.txt")
        };
        let marked = |mark| differences.lines().filter_map(move |line| line.strip_prefix(mark));
        let absent: Vec<_> = marked('-').collect();
        for id in &absent {
            assert!(
                ids.contains(id),
                "{id} is taken away in the list of another processor and not in fixtures/ids.txt"
            );
        }
        if cfg!(not(target_arch = "x86_64")) {
            ids.retain(|id| !absent.contains(id));
            let group = |id: &str| id.split('/').next().map(str::to_owned);
            for id in marked('+').collect::<Vec<_>>().into_iter().rev() {
                let at = ids.iter().position(|other| group(other) == group(id));
                ids.insert(at.unwrap_or(ids.len()), id);
            }
        }
        ids.into_iter().map(|id| format!("{id}\n")).collect()
    }

    #[test]
    fn ids_are_those_of_the_fixture() {
        let ids: String = GROUPS
            .iter()
            .flat_map(|g| (g.cases)().iter().map(|c| g.id(c) + "\n").collect::<Vec<_>>())
            .collect();
        let written = expected_ids();
        assert_eq!(ids, written, "ids are a wire format: a rename orphans old records (fixtures/ids.txt)");
    }

    #[test]
    fn every_case_proves_something_and_predicts_something() {
        for group in GROUPS {
            for case in (group.cases)() {
                assert!(!case.claims.is_empty(), "{}/{} has no claim", group.name, case.name);
                assert!(case.prediction.is_some(), "{}/{} has no prediction", group.name, case.name);
            }
        }
    }

    #[test]
    fn a_chart_that_names_a_stride_has_the_curves_of_this_stride() {
        let curves = GROUPS.iter().flat_map(|group| group.curves);
        let strides = curves.filter_map(|curve| {
            let chart = curve.chart.rsplit_once(" at ")?.1.strip_suffix(" bytes")?;
            Some((chart, curve.prefix))
        });
        let strides: Vec<_> = strides.collect();
        assert!(
            strides.len() > 2 && strides.iter().all(|(n, prefix)| prefix.ends_with(&format!("-{n}/"))),
            "{strides:?}"
        );
    }

    #[test]
    fn every_curve_has_cases_and_no_two_have_the_same() {
        for group in GROUPS {
            let ids: Vec<String> = (group.cases)().iter().map(|case| group.id(case)).collect();
            for (at, curve) in group.curves.iter().enumerate() {
                let points = ids.iter().filter(|id| id.starts_with(curve.prefix)).count();
                assert!(points >= 2, "{} has {points} points", curve.prefix);
                assert!(curve.prefix.ends_with('/'), "{}: another series may begin alike", curve.prefix);
                let before = &group.curves[..at];
                assert!(before.iter().all(|other| other.prefix != curve.prefix), "{}", curve.prefix);
            }
        }
    }

    #[test]
    fn every_headline_has_a_case_and_a_place_of_its_own_and_fits() {
        let mut places = std::collections::BTreeSet::new();
        for group in GROUPS {
            let ids: Vec<String> = (group.cases)().into_iter().map(|case| case.name).collect();
            for headline in group.headlines {
                assert!(ids.iter().any(|id| id == headline.case), "{}/{}", group.name, headline.case);
                assert!(places.insert(headline.place), "{}: its place is taken", headline.case);
                assert!(headline.words.chars().count() <= crate::record::Headline::LONGEST);
            }
        }
        assert!((25..=45).contains(&places.len()), "more than a screen: {}", places.len());
    }

    #[test]
    fn no_two_cases_have_confusable_names() {
        crate::driver::check_names(GROUPS).expect("different names");
    }

    #[test]
    fn the_suite_has_twelve_answers() {
        let headlines = crate::driver::group_headlines(GROUPS.iter());
        let answers: Vec<_> = headlines.iter().filter(|(_, headline)| headline.is_answer).collect();
        assert_eq!(answers.len(), 12, "{answers:?}");
    }

    #[test]
    fn every_reference_is_whole_and_names_headlines_of_ours() {
        use crate::study::published::{find_reference, reference_names};
        let headlines = crate::driver::group_headlines(GROUPS.iter());
        for name in reference_names() {
            let reference = find_reference(name).unwrap_or_else(|| panic!("{name} cannot be read"));
            assert!(reference.figures.len() > 20, "{name}");
            for (id, figure) in &reference.figures {
                let (_, headline) =
                    headlines.iter().find(|(known, _)| known == id).unwrap_or_else(|| panic!("{name}: {id}"));
                assert_eq!(figure.figure.as_deref(), headline.figure, "{name}: {id}");
                assert!(figure.value.low > 0.0 && figure.value.low <= figure.value.high, "{name}: {id}");
            }
        }
    }

    #[test]
    fn every_published_row_names_a_case_or_a_part_of_a_curve_of_ours() {
        use crate::study::published;
        use std::collections::BTreeSet;
        let cases: BTreeSet<&str> = include_str!("../fixtures/ids.txt").lines().collect();
        let steps: BTreeSet<&str> = GROUPS.iter().flat_map(|group| group.fits).map(|fit| fit.step).collect();
        let files = published::names().map(|name| published::find(name).expect("a file that can be read"));
        for published::Published { name, rows, .. } in files.flatten() {
            let mut seen = BTreeSet::new();
            for published::PublishedValue { id, figure, .. } in &rows {
                assert!(seen.insert((id.clone(), figure.clone())), "{name}: {id} occurs twice");
                let known = match id.split_once('/') {
                    Some(("fall", prefix)) => cases.iter().any(|case| case.starts_with(prefix)),
                    Some(("fit", step)) => steps.contains(step),
                    _ => cases.contains(id.as_str()),
                };
                assert!(known, "{name}: {id} is no case");
            }
        }
    }

    #[test]
    fn no_name_is_longer_than_criterion_keeps() {
        for group in GROUPS {
            for case in (group.cases)() {
                assert!(case.name.len() <= 64 && group.id(&case).is_ascii(), "{}", case.name);
            }
        }
    }
}
