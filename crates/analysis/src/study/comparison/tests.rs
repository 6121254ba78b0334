use super::fixture_head::{add_noise, head, head_with_cases, join_into_one_boot, scale_cases};
use super::*;
use crate::record::bundle::Head;

fn against(first: &Head, other: &Head, history: &[Head]) -> Comparison {
    compare(&[first.clone(), other.clone()], history, Options::default())
}

fn change_of<'a>(comparison: &'a Comparison, id: &str) -> &'a Change {
    let row = comparison.rows.iter().find(|row| row.id == id).expect("the case");
    row.changes().next().expect("a change")
}

fn noisy(name: &str, boots: usize, deviation: f64, seed: u64) -> Head {
    let mut head = head(name, boots, 3);
    add_noise(&mut head, deviation, deviation, seed);
    head
}

/// A store of records of the same machine, one boot each.
fn stored(count: usize, deviation: f64) -> Vec<Head> {
    let named = |at: usize| {
        let mut head = noisy(&format!("stored-{at}"), 1, deviation, 1000 + at as u64);
        head.fingerprints[0].kernel_release = Some("stored".into());
        head
    };
    (0..count).map(named).collect()
}

#[test]
fn a_change_between_five_boots_a_side_is_found_and_no_other() {
    let (old, mut new) = (noisy("old", 5, 0.004, 1), noisy("new", 5, 0.004, 2));
    scale_cases(&mut new, "syscall/getpid", 1.05);
    let comparison = against(&old, &new, &[]);
    let getpid = change_of(&comparison, "syscall/getpid");
    assert_eq!((getpid.verdict, getpid.basis), (Verdict::Slower, Some(Basis::Replicates)));
    let [low, high] = getpid.interval.expect("an interval");
    assert!(low > 1.02 && high < 1.08, "{getpid:?}");
    assert!(change_of(&comparison, "syscall/openat-close").verdict != Verdict::Slower);
    let back = against(&new, &old, &[]);
    assert_eq!(change_of(&back, "syscall/getpid").verdict, Verdict::Faster);
}

#[test]
fn an_unchanged_case_is_called_the_same() {
    let (old, new) = (noisy("old", 6, 0.003, 1), noisy("new", 6, 0.003, 2));
    let comparison = against(&old, &new, &[]);
    assert!(comparison.changes().all(|change| change.verdict == Verdict::Same), "{comparison:?}");
}

#[test]
fn one_change_among_sixty_rows_is_found_with_five_boots_a_side() {
    let ids: Vec<String> = (0..60).map(|at| format!("call/u64/{at}")).collect();
    let side = |name: &str, seed| {
        let mut head = head_with_cases(name, 5, 3, &ids);
        add_noise(&mut head, 0.004, 0.004, seed);
        head
    };
    let (old, mut new) = (side("old", 1), side("new", 2));
    scale_cases(&mut new, "call/u64/17", 1.06);
    let comparison = against(&old, &new, &[]);
    let changed: Vec<_> =
        comparison.rows.iter().filter(|row| row.changes().any(|c| c.verdict.is_change())).collect();
    assert!(changed.len() == 1 && changed[0].id == "call/u64/17", "{changed:?}");
}

#[test]
fn a_change_below_the_threshold_is_none() {
    let (old, mut new) = (noisy("old", 5, 0.002, 1), noisy("new", 5, 0.002, 2));
    scale_cases(&mut new, "syscall/getpid", 1.05);
    let options = Options { threshold: 0.1 };
    let comparison = compare(&[old, new], &[], options);
    assert_eq!((comparison.threshold, comparison.margin), (0.1, 0.1));
    assert_eq!(change_of(&comparison, "syscall/getpid").verdict, Verdict::Same);
}

#[test]
fn a_drift_of_the_core_is_divided_out() {
    let (old, mut new) = (noisy("old", 5, 0.002, 1), noisy("new", 5, 0.002, 2));
    scale_cases(&mut new, "", 1.1);
    let comparison = against(&old, &new, &[]);
    assert!(!change_of(&comparison, "syscall/getpid").verdict.is_change());
    assert_eq!(change_of(&comparison, "known_work/add").verdict, Verdict::Slower, "the canary itself is not");
    let relation = comparison.baselines[1].relation.as_ref().expect("a relation");
    assert!((relation.canary.expect("canaries") - 1.1).abs() < 0.01);
    assert!(relation.warnings.iter().any(|sentence| sentence.contains("canaries")), "{relation:?}");
}

#[test]
fn without_canaries_a_drift_is_a_change_and_that_is_said() {
    let (mut old, mut new) = (noisy("old", 5, 0.002, 1), noisy("new", 5, 0.002, 2));
    scale_cases(&mut new, "", 1.1);
    old.series.retain(|series| !series.id.starts_with("known_work"));
    let comparison = against(&old, &new, &[]);
    assert_eq!(change_of(&comparison, "syscall/getpid").verdict, Verdict::Slower);
    let relation = comparison.baselines[1].relation.as_ref().expect("a relation");
    assert!(relation.warnings[0].contains("known_work is not on both sides"), "{relation:?}");
}

#[test]
fn one_boot_a_side_is_unreplicated() {
    let (old, mut new) = (noisy("old", 1, 0.002, 1), noisy("new", 1, 0.002, 2));
    scale_cases(&mut new, "syscall/getpid", 2.0);
    let change = change_of(&against(&old, &new, &[]), "syscall/getpid").clone();
    assert_eq!((change.verdict, change.basis), (Verdict::Inconclusive, None));
    assert!((change.ratio.expect("the change is still shown") - 2.0).abs() < 0.05);
    let reason = change.reason.expect("a reason");
    assert!(reason.starts_with("unreplicated: one boot a side, and no other record tells"), "{reason}");
    assert!(reason.contains("5 boots a side settle it"), "{reason}");
}

#[test]
fn many_processes_of_one_session_are_no_replicates() {
    let side = |name, seed| {
        let mut head = head(name, 1, 40);
        add_noise(&mut head, 0.0, 0.001, seed);
        join_into_one_boot(&mut head);
        head
    };
    let (old, mut new) = (side("old", 1), side("new", 2));
    scale_cases(&mut new, "syscall/getpid", 1.05);
    let comparison = against(&old, &new, &[]);
    let change = change_of(&comparison, "syscall/getpid");
    assert_eq!(change.verdict, Verdict::Inconclusive);
    let reason = change.reason.clone().expect("a reason");
    assert!(reason.contains("one session a side") && reason.contains("`syscost ab`"), "{reason}");
    let relation = comparison.baselines[1].relation.as_ref().expect("a relation");
    assert_eq!((relation.replicate, relation.canary), (Replicate::Session, None));
}

#[test]
fn stored_records_give_the_deviation_between_boots() {
    let (old, mut new) = (noisy("old", 1, 0.004, 1), noisy("new", 1, 0.004, 2));
    scale_cases(&mut new, "syscall/getpid", 1.2);
    let history = stored(12, 0.004);
    let comparison = against(&old, &new, &history);
    let getpid = change_of(&comparison, "syscall/getpid");
    assert_eq!((getpid.verdict, getpid.basis), (Verdict::Slower, Some(Basis::History)));
    assert!(!change_of(&comparison, "syscall/openat-close").verdict.is_change());
    assert!(comparison.remarks()[0].ends_with("judged by how those in other records deviate"));
    let few = against(&old, &new, &history[..4]);
    let reason = change_of(&few, "syscall/getpid").reason.clone().expect("a reason");
    assert!(reason.contains("other records have 4 boots, too few"), "{reason}");
}

#[test]
fn other_machines_and_the_judged_runs_do_not_count_as_history() {
    let (old, new) = (noisy("old", 1, 0.004, 1), noisy("new", 1, 0.004, 2));
    let mut others = stored(12, 0.004);
    others.iter_mut().for_each(|head| head.fingerprints[0].cpu_model = Some("another".into()));
    let mut old = old;
    old.fingerprints[0].cpu_model = Some("this".into());
    let mut new = new;
    new.fingerprints[0].cpu_model = Some("this".into());
    assert_eq!(change_of(&against(&old, &new, &others), "syscall/getpid").basis, None);
    let itself = vec![old.clone(); 12];
    assert_eq!(change_of(&against(&old, &new, &itself), "syscall/getpid").basis, None);
    let mut smoke = stored(12, 0.004);
    smoke.iter_mut().for_each(|head| head.scale = "smoke".into());
    assert_eq!(change_of(&against(&old, &new, &smoke), "syscall/getpid").basis, None);
}

#[test]
fn one_process_deviates_more_than_the_mean_of_many() {
    let mut history = stored(12, 0.0);
    for (at, head) in history.iter_mut().enumerate() {
        add_noise(head, 0.0, 0.01, at as u64);
    }
    let detectable = |processes| {
        let (old, new) = (head("old", 1, processes), head("new", 1, processes));
        change_of(&against(&old, &new, &history), "syscall/getpid").detectable_percent.expect("pooled")
    };
    assert!(detectable(1) > 1.3 * detectable(3), "{} {}", detectable(1), detectable(3));
}

#[test]
fn an_incomparable_case_has_a_reason() {
    let first = head("old", 5, 1);
    let changed = |change: fn(&mut Head)| {
        let mut other = head("new", 5, 1);
        change(&mut other);
        let comparison = against(&first, &other, &[]);
        let change = change_of(&comparison, "syscall/getpid").clone();
        assert_eq!(change.verdict, Verdict::Incomparable);
        change.reason.expect("a reason")
    };
    assert!(changed(|head| head.unit = "instructions".into()).contains("old counts ns, new instructions"));
    assert!(changed(|head| head.fingerprints[0].debug_assertions = true).contains("debug_assertions"));
    assert!(changed(|head| head.series[2].version = "other".into()).contains("another version"));
    assert!(changed(|head| head.series[2].clock = "other".into()).contains("another clock"));
    let skip: fn(&mut Head) = |head| {
        head.series[2].values.clear();
        head.series[2].without.push("A claim did not hold.".into());
    };
    assert!(changed(skip).ends_with("A claim did not hold."));
    assert!(changed(|head| _ = head.series.remove(2)).contains("not in new"));
}

#[test]
fn a_case_that_only_the_second_head_has_is_a_row() {
    let (mut first, other) = (head("old", 5, 1), head("new", 5, 1));
    first.series.remove(2);
    let comparison = against(&first, &other, &[]);
    let change = change_of(&comparison, "syscall/getpid");
    assert_eq!(change.reason.as_deref(), Some("the case is not in old"));
    let row = comparison.rows.iter().find(|row| row.id == "syscall/getpid").expect("the case");
    assert!(row.cells[0].value.is_none() && row.cells[1].value.is_some());
}

#[test]
fn instructions_are_compared_exactly_and_never_with_times() {
    let counted = |name: &str, instructions: f64| {
        let mut head = Head { unit: "user-instructions".into(), ..head(name, 1, 2) };
        let values = head.series.iter_mut().flat_map(|series| &mut series.values);
        values.for_each(|value| value.median = Interval::exactly(instructions));
        head
    };
    let judged = |old: &Head, new: &Head, threshold| {
        let comparison = compare(&[old.clone(), new.clone()], &[], Options { threshold });
        change_of(&comparison, "syscall/getpid").clone()
    };
    let [old, same, more] =
        [("old", 1_000.0), ("same", 1_000.0), ("more", 1_001.0)].map(|(n, i)| counted(n, i));
    assert_eq!(judged(&old, &same, 0.0).verdict, Verdict::Same);
    let change = judged(&old, &more, 0.0);
    assert_eq!(change.verdict, Verdict::Slower);
    assert_eq!(change.reason.as_deref(), Some("1001 user-instructions an iteration, 1000 before"));
    assert_eq!(judged(&old, &more, 0.01).verdict, Verdict::Same);
    assert_eq!(judged(&head("timed", 5, 1), &more, 0.0).verdict, Verdict::Incomparable);
}

#[test]
fn a_count_that_never_varies_is_the_same() {
    let side = |name| Head { unit: "instructions".into(), ..head(name, 5, 1) };
    let comparison = against(&side("old"), &side("new"), &[]);
    assert!(comparison.changes().all(|change| change.verdict == Verdict::Same));
    let relation = comparison.baselines[1].relation.as_ref().expect("a relation");
    assert!(relation.canary.is_none() && relation.warnings.is_empty(), "{relation:?}");
}

#[test]
fn the_same_heads_give_the_same_bytes() {
    let heads = [noisy("a", 9, 0.01, 1), noisy("b", 9, 0.01, 2), noisy("c", 1, 0.01, 3)];
    let history = stored(12, 0.01);
    let json = || serde_json::to_string(&compare(&heads, &history, Options::default())).expect("JSON");
    assert_eq!(json(), json());
}

#[test]
fn a_baseline_of_the_same_name_gets_a_number_and_the_same_runs_are_noticed() {
    let first = head("main", 1, 1);
    let comparison = against(&first, &first, &[]);
    assert_eq!(comparison.baselines[1].name, "main (2)");
    let relation = comparison.baselines[1].relation.as_ref().expect("a relation");
    assert!(relation.warnings[0].contains("1 of its runs are also in main"), "{relation:?}");
    assert!(comparison.baselines[0].summary().ends_with("1 process, default, unreplicated"));
}

#[test]
fn rows_that_are_left_out_change_no_verdict() {
    let (old, mut new) = (noisy("old", 5, 0.01, 1), noisy("new", 5, 0.01, 2));
    scale_cases(&mut new, "syscall/getpid", 1.5);
    let whole = against(&old, &new, &[]);
    let mut part = whole.clone();
    part.keep_rows(|id| id.starts_with("syscall"));
    part.keep_changed();
    assert_eq!((part.rows.len(), part.left_out), (1, 1));
    assert_eq!(part.tally.verdicts.values().sum::<usize>(), 2, "what was left out is counted");
    assert_eq!(
        change_of(&part, "syscall/getpid").p_among_all,
        change_of(&whole, "syscall/getpid").p_among_all
    );
}

#[test]
fn rows_are_sorted_by_weight() {
    let (old, mut new) = (noisy("old", 5, 0.002, 1), noisy("new", 5, 0.002, 2));
    scale_cases(&mut new, "syscall/openat", 1.5);
    scale_cases(&mut new, "syscall/getpid", 0.9);
    let mut comparison = against(&old, &new, &[]);
    let ids = |comparison: &Comparison| {
        comparison
            .rows
            .iter()
            .map(|row| row.id.rsplit('/').next().unwrap_or("").to_owned())
            .collect::<Vec<_>>()
    };
    comparison.sort_by_weight();
    assert_eq!(ids(&comparison)[..2], ["openat-close", "getpid"]);
}

#[test]
fn a_known_core_frequency_is_divided_out() {
    let clocked = |name: &str, hz: f64| of_frequency(name, 5, hz);
    let comparison = against(&clocked("old", 4e9), &clocked("new", 3.8e9), &[]);
    assert_eq!(change_of(&comparison, "syscall/getpid").verdict, Verdict::Same);
    assert_eq!(
        change_of(&comparison, "known_work/add").verdict,
        Verdict::Slower,
        "the canary itself is not divided"
    );
    let relation = comparison.baselines[1].relation.as_ref().expect("a relation");
    assert!((relation.cycle.expect("frequencies") - 4.0 / 3.8).abs() < 1e-9);
    assert!(
        relation.warnings.iter().any(|sentence| sentence.contains("a cycle of its core")),
        "{relation:?}"
    );
}

/// Records of one boot, in which a core of this frequency was found.
fn of_frequency(name: &str, processes: usize, hz: f64) -> Head {
    let mut head = noisy(name, processes, 0.002, 1);
    scale_cases(&mut head, "", 4e9 / hz);
    let values = head.series.iter_mut().flat_map(|series| &mut series.values);
    values.for_each(|value| value.core_hz = Some(hz));
    join_into_one_boot(&mut head);
    head
}

#[test]
fn the_frequency_is_divided_out_of_a_single_process_too() {
    let comparison = against(&of_frequency("old", 5, 4e9), &of_frequency("new", 1, 3.6e9), &[]);
    let ratio = change_of(&comparison, "syscall/getpid").ratio.expect("a ratio");
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
}

/// As the test of the replicate rule, but with a deviation pooled from eight stored boots.
#[test]
fn unchanged_rows_are_hardly_ever_called_changed_by_a_pooled_deviation() {
    let mut alarms = 0;
    for round in 0..20 {
        let ids: Vec<String> = (0..60).map(|at| format!("call/u64/{at}")).collect();
        let side = |name: &str, boots, seed| {
            let mut head = head_with_cases(name, boots, 2, &ids);
            head.fingerprints[0].kernel_release = Some("the same".into());
            add_noise(&mut head, 0.02, 0.01, seed);
            head
        };
        let history = [side("stored", 8, 300 + round)];
        let comparison = against(&side("old", 1, 100 + round), &side("new", 1, 200 + round), &history);
        assert!(comparison.changes().all(|change| change.basis == Some(Basis::History)));
        alarms += comparison.changes().filter(|change| change.verdict.is_change()).count();
    }
    assert!(alarms <= 2, "0.2 are expected of 1200: {alarms}");
}
