//! The floors of the crate, and the arrows between them: who may use whom.

use crate::house::House;
use crate::reference::{Reference, references};
use std::collections::BTreeSet;

/// What of a floor may be used.
enum Extent {
    /// All that is public.
    Whole,
    /// These names.
    Only(&'static [&'static str]),
}

use Extent::{Only, Whole};

/// Who uses whom, how much of it, and why that must be. An arrow that is not here does not exist.
#[rustfmt::skip]
const ARROWS: &[(&str, &str, Extent, &str)] = &[
    ("error", "exit", Whole, "the kind of an error decides the exit code"),
    ("study", "exit", Whole, "a gate's answer is an exit code"),
    ("pair", "exit", Whole, "a side is a process"),
    ("harness", "exit", Whole, "a bench target is a process"),
    ("clock", "platform", Whole, "what reads is built of what can be read"),
    ("clock", "statistic", Whole, "a calibration is a fitted line; a fluid's window is a statistic's input"),
    ("environment", "platform", Whole, "what is true of a machine is asked of the kernel"),
    ("case", "clock", Whole, "an operation is given the clock, and its claims are asked of what was counted"),
    ("case", "platform", Whole, "partners are tasks; needs are asked of the kernel"),
    ("case", "environment", Only(&["Wire"]), "an operation may end on another machine"),
    ("case", "record", Only(&["Curve", "Headline"]), "which cases are points of a curve, and which speak for a group, is said where the cases are"),
    ("kit", "platform", Whole, "parts of operations are built of system calls"),
    ("kit", "clock", Whole, "they time what they do"),
    ("kit", "case", Whole, "they are subjects and builders of cases"),
    ("kit", "statistic", Only(&["Random"]), "blocks are read in an order drawn by chance"),
    ("kit", "peer", Whole, "the far end of an operation may be a peer's"),
    ("peer", "platform", Whole, "its sockets are shut down"),
    ("peer", "environment", Whole, "each end tells the other what it is"),
    ("counters", "platform", Whole, "a process is held by its descriptor"),
    ("counters", "kit", Whole, "its validation reads pages that were put out of the page cache"),
    ("counters", "statistic", Whole, "a validated share has an interval; loads are drawn by chance"),
    ("monitor", "counters", Whole, "it shows what they tell"),
    ("monitor", "platform", Whole, "a process's clock"),
    ("technique", "platform", Whole, "a monitor is built of timers, signals and what two CPUs share"),
    ("technique", "kit", Whole, "a monitor samples, sleeps and reads files as operations do"),
    ("technique", "counters", Whole, "what a controller looks at are the system's counters"),
    ("technique", "statistic", Whole, "a sampled fraction has an interval; a period is drawn by chance"),
    ("page_cache", "platform", Whole, "what is available, and what others pay, is asked of the kernel"),
    ("page_cache", "kit", Whole, "it reads a pattern file, as operations do"),
    ("page_cache", "counters", Whole, "it ends where tasks wait for memory"),
    ("page_cache", "statistic", Whole, "a speed is a median"),
    ("suite", "case", Whole, "a group is a list of cases"),
    ("suite", "kit", Whole, "what several groups share"),
    ("suite", "clock", Whole, "an operation is given the clock"),
    ("suite", "platform", Whole, "the operation itself"),
    ("suite", "counters", Whole, "what a reading of them costs is measured, too"),
    ("suite", "technique", Whole, "what a monitor itself costs is measured, too"),
    ("suite", "record", Only(&["Axis", "Curve", "Headline", "Study"]), "which cases are points of a curve is said where the cases are"),
    ("suite", "environment", Only(&["Wire"]), "an operation may end on another machine"),
    ("suite", "statistic", Only(&["Random"]), "a ring of memory is drawn by chance"),
    ("record", "platform", Only(&["inert", "plain_file"]), "what is read is a plain file, and its text commands no terminal"),
    ("record", "environment", Whole, "a record carries the fingerprint of its machine"),
    ("record", "statistic", Only(&["Interval"]), "an interval is one type, in the answer and in the record"),
    ("study", "record", Whole, "it reads plain data"),
    ("study", "statistic", Whole, "it says what they mean"),
    ("study", "environment", Whole, "a comparison knows the two machines"),
    ("render", "record", Whole, "it shows what was recorded"),
    ("render", "study", Whole, "and what it means"),
    ("render", "environment", Whole, "tables name the machine"),
    ("trial", "case", Whole, "it sets a case up and runs it"),
    ("trial", "clock", Whole, "it reads before and after"),
    ("trial", "environment", Whole, "it watches what changes meanwhile"),
    ("trial", "platform", Whole, "it pins, locks and forks"),
    ("trial", "statistic", Whole, "a claim is judged by an interval"),
    ("trial", "record", Whole, "its outcome is what is recorded"),
    ("liar", "trial", Whole, "the claims are put on trial"),
    ("liar", "case", Whole, "a liar is a case"),
    ("liar", "suite", Whole, "with the claims of a real one"),
    ("liar", "kit", Whole, "and an operation that does less"),
    ("liar", "clock", Whole, "which it times"),
    ("liar", "platform", Whole, "and which may be another system call"),
    ("pair", "trial", Whole, "a side takes its turns in a trial"),
    ("pair", "case", Whole, "a side sets a case up"),
    ("pair", "suite", Whole, "a side finds its case"),
    ("pair", "clock", Whole, "both sides have one clock"),
    ("pair", "platform", Whole, "it starts, pins and ends the sides"),
    ("pair", "environment", Whole, "it takes the fingerprint"),
    ("pair", "record", Whole, "its pairs are recorded"),
    ("pair", "study", Whole, "its pairs are judged there"),
    ("pair", "statistic", Whole, "who begins is chance; a pair's figure is a median"),
    ("guest", "case", Whole, "a guest sets a case up"),
    ("guest", "clock", Whole, "whose ticks are instructions there"),
    ("guest", "pair", Whole, "guests take turns as the sides of a pair do"),
    ("guest", "platform", Whole, "it starts and ends the emulator, and the first process of a guest is Linux's"),
    ("guest", "record", Whole, "its counts are recorded"),
    ("guest", "study", Only(&["counted_change"]), "whether boots agree decides whether more are needed"),
    ("guest", "suite", Whole, "a guest finds its case"),
    ("guest", "trial", Whole, "a case takes its turns in a trial"),
    ("reboot", "platform", Whole, "kernels, programs and units are files; the running kernel says which it is"),
    ("reboot", "record", Only(&["store"]), "a plan is a file that is written whole or not at all"),
    ("driver", "case", Whole, "it knows groups and cases"),
    ("driver", "clock", Only(&["ClockScale", "Dispute", "check_clocks"]), "it compares the clocks, and hands the first process' scale on"),
    ("driver", "statistic", Only(&["Random", "fluid_cost"]), "rounds in random order; the flags of displaced cases"),
    ("driver", "suite", Whole, "it knows the groups of this crate"),
    ("driver", "trial", Only(&["SEED", "scratch"]), "it removes what killed processes left, and records the seed"),
    ("driver", "environment", Whole, "it takes the fingerprint"),
    ("driver", "platform", Whole, "it starts and ends processes"),
    ("driver", "record", Whole, "it writes what Criterion cannot hold"),
    ("driver", "study", Whole, "curves and fits stand in the record"),
    ("driver", "render", Whole, "it ends with the table"),
    ("driver", "exit", Whole, "a run ends with an exit code"),
    ("harness", "driver", Whole, "a bench target starts as the driver, and a measuring process reports to it"),
    ("harness", "pair", Only(&["is_side", "side"]), "a bench can be started as a side of a pair"),
    ("harness", "trial", Whole, "it drives trials from Criterion"),
    ("harness", "counters", Whole, "what else the machine did meanwhile is written beside a number"),
    ("harness", "record", Whole, "its outcomes are recorded"),
    ("harness", "case", Whole, "it knows groups and cases"),
    ("harness", "suite", Whole, "it knows the groups of this crate"),
    ("harness", "environment", Only(&["Accounting"]), "how the kernel accounts time is said beside displacement"),
    ("harness", "clock", Whole, "its measurement is our clock"),
    ("harness", "platform", Whole, "it prepares its process"),
];

/// Rooms that other rooms are built on or are made of; `error` is used by all and uses none.
const FLOORS: [&str; 24] = [
    "error",
    "exit",
    "platform",
    "clock",
    "environment",
    "case",
    "kit",
    "liar",
    "counters",
    "monitor",
    "page_cache",
    "technique",
    "statistic",
    "suite",
    "peer",
    "record",
    "study",
    "render",
    "trial",
    "pair",
    "guest",
    "reboot",
    "driver",
    "harness",
];

/// `command` is what a person types and may use anything; the roots wire everything together.
const FREE: [&str; 5] = ["command", "internals", "lib", "main", "manual"];

/// The room that every other one may use.
const OF_ALL: [&str; 1] = ["error"];

pub fn complaints(house: &House) -> Vec<String> {
    let floors = house.shipped().filter(|(path, _)| !FREE.contains(&floor(path)));
    floors.flat_map(|(path, code)| floor_complaints(path, &code)).collect()
}

/// Arrows that nothing needs: each would permit what nobody looks at any more.
pub fn unused(house: &House) -> Vec<String> {
    let used: BTreeSet<_> = house
        .shipped()
        .flat_map(|(path, code)| {
            let own = references(&code, "crate");
            let climbed = references(&code, "super").into_iter().filter_map(|r| beyond_own_floor(path, r));
            let to: Vec<_> =
                own.into_iter().chain(climbed).filter_map(|r| r.parts.first().cloned()).collect();
            to.into_iter().map(|to| (floor(path).to_owned(), to)).collect::<Vec<_>>()
        })
        .collect();
    let idle = ARROWS.iter().filter(|(from, to, ..)| !used.contains(&((*from).to_owned(), (*to).to_owned())));
    idle.map(|(from, to, ..)| {
        format!("tests/tidy/rule/room.rs: nothing in {from} uses {to}: take the arrow away")
    })
    .collect()
}

fn floor(path: &str) -> &str {
    path.trim_start_matches("src/").split(['/', '.']).next().unwrap_or_default()
}

fn floor_complaints(path: &str, code: &str) -> Vec<String> {
    let from = floor(path);
    if !FLOORS.contains(&from) {
        return vec![format!(
            "{path}: {from} is on no floor; give it its arrows in tests/tidy/rule/floor.rs"
        )];
    }
    let mut paths = references(code, "crate");
    paths.extend(references(code, "super").into_iter().filter_map(|r| beyond_own_floor(path, r)));
    paths.sort_by_key(|r| r.line);
    let broken =
        paths.iter().filter_map(|r| refusal(from, &r.parts).map(|why| format!("{path}:{}: {why}", r.line)));
    broken.collect()
}

/// A path by `super` that climbs to the crate's root and down to another floor.
fn beyond_own_floor(path: &str, mut reference: Reference) -> Option<Reference> {
    let depth = path.trim_start_matches("src/").split('/').count();
    let climbs = 1 + reference.parts.iter().take_while(|part| *part == "super").count();
    let parts = reference.parts.split_off((climbs - 1).min(reference.parts.len()));
    let to = parts.first()?.as_str();
    let is_another = (FLOORS.contains(&to) || FREE.contains(&to)) && to != floor(path);
    (climbs >= depth && is_another).then_some(Reference { line: reference.line, parts })
}

/// Why `from` may not use the path, if it may not.
fn refusal(from: &str, parts: &[String]) -> Option<String> {
    let to = parts.first()?.as_str();
    if to == from || OF_ALL.contains(&to) {
        return None;
    }
    if !FLOORS.contains(&to) && !FREE.contains(&to) {
        return Some(format!("{from} takes `{to}` from the crate's root; name the module that it lives in"));
    }
    let name = parts.get(1).map_or("", String::as_str);
    let arrow = ARROWS.iter().find(|arrow| arrow.0 == from && arrow.1 == to);
    match arrow.map(|arrow| &arrow.2) {
        None => Some(format!("{from} may not use {to}; {}", allowed(from))),
        Some(Only(names)) if !names.contains(&name) => {
            Some(format!("{from} may use of {to} only {}, not `{name}`", names.join(", ")))
        }
        Some(_) => None,
    }
}

fn allowed(from: &str) -> String {
    let to: Vec<_> = ARROWS.iter().filter(|arrow| arrow.0 == from).map(|arrow| arrow.1).collect();
    match to.is_empty() {
        true => "it stands on nothing but the error".into(),
        false => format!("its arrows run to {}", to.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &str, text: &str) -> Vec<String> {
        complaints(&House::default().with(path, text))
    }

    #[test]
    fn every_arrow_runs_between_floors_says_why_and_stands_once() {
        for (at, (from, to, _, why)) in ARROWS.iter().enumerate() {
            assert!(FLOORS.contains(from) && FLOORS.contains(to) && !why.is_empty(), "{from} to {to}");
            assert!(
                ARROWS[..at].iter().all(|earlier| (earlier.0, earlier.1) != (*from, *to)),
                "{from} to {to}"
            );
        }
    }

    #[test]
    fn no_arrow_leads_back() {
        let mut below: Vec<&str> = vec!["error"];
        while below.len() < FLOORS.len() {
            let next = FLOORS.iter().find(|floor| {
                let mut arrows = ARROWS.iter().filter(|(from, ..)| from == *floor);
                !below.contains(floor) && arrows.all(|(_, to, ..)| below.contains(to))
            });
            below.push(next.expect("every room that is left needs another one that is left: a circle"));
        }
    }

    #[test]
    fn an_arrow_that_nothing_needs_is_found() {
        let said = unused(&House::default().with("src/clock/x.rs", "use crate::platform::cpu;"));
        assert_eq!(said.len(), ARROWS.len() - 1);
    }

    #[test]
    fn an_arrow_that_is_not_drawn_is_refused() {
        let said = said("src/record/x.rs", "\nuse crate::{error::Error, clock::Clock};");
        assert_eq!(
            said,
            [
                "src/record/x.rs:2: record may not use clock; its arrows run to platform, environment, statistic"
            ]
        );
        assert_eq!(super::tests::said("src/platform.rs", "use crate::error::{Error, Result};"), [""; 0]);
        assert_eq!(super::tests::said("src/platform.rs", "use crate::command;").len(), 1);
    }

    #[test]
    fn climbing_over_the_root_is_the_same_as_starting_there() {
        let said =
            said("src/record/table/x.rs", "use super::super::width;\nuse super::super::super::trial::Trial;");
        assert_eq!(
            said,
            [
                "src/record/table/x.rs:2: record may not use trial; its arrows run to platform, environment, statistic"
            ]
        );
    }

    #[test]
    fn a_floor_lent_in_part_is_not_used_whole() {
        assert_eq!(said("src/record/x.rs", "use crate::statistic::{Interval, median};").len(), 1);
        assert_eq!(said("src/case/x.rs", "use crate::environment::Wire;").len(), 0);
        assert_eq!(said("src/case/x.rs", "use crate::environment::Fingerprint;").len(), 1);
    }

    #[test]
    fn a_detour_by_the_root_and_a_module_on_no_floor_are_noticed() {
        assert_eq!(said("src/platform/x.rs", "crate::group()").len(), 1);
        assert_eq!(said("src/gadget.rs", "").len(), 1);
    }

    #[test]
    fn what_is_said_of_a_floor_is_not_a_use_of_it() {
        let text =
            "//! [`crate::trial`]\n/// crate::trial\n#[cfg(test)]\nmod tests {\n    use crate::trial;\n}";
        assert_eq!(said("src/record.rs", text), [""; 0]);
    }
}
