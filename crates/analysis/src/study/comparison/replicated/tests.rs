use super::*;
use crate::record::bundle::Head;
use crate::study::comparison::fixture_head::{
    add_noise, head_with_cases, join_into_one_boot, lengthen_some, scale_cases,
};
use crate::study::comparison::{Comparison, Options, compare};

fn against(first: &Head, other: &Head) -> Comparison {
    compare(&[first.clone(), other.clone()], &[], Options::default())
}

fn change_of<'a>(comparison: &'a Comparison, id: &str) -> &'a Change {
    let row = comparison.rows.iter().find(|row| row.id == id).expect("the case");
    row.changes().next().expect("a change")
}

fn floor(estimate: f64, spread: f64, middle: f64) -> Floor {
    Floor { estimate, spread, middle }
}

#[test]
fn the_whole_interval_decides() {
    let rule = Rule { threshold: 0.01, margin: 0.02 };
    let verdict_at = |change, spread| verdict([floor(0.0, spread, 0.001), floor(change, 0.0, change)], rule);
    assert_eq!(verdict_at(0.05, 0.03), Verdict::Slower);
    assert_eq!(verdict_at(-0.05, 0.03), Verdict::Faster);
    assert_eq!(verdict_at(0.05, 0.045), Verdict::Inconclusive);
    assert_eq!(verdict_at(0.0, 0.019), Verdict::Same);
    assert_eq!(verdict_at(0.001, 0.019), Verdict::Inconclusive);
}

#[test]
fn a_floor_that_half_of_the_processes_do_not_share_is_no_change() {
    let rule = Rule { threshold: 0.01, margin: 0.02 };
    let floors = [floor(0.0, 0.001, 0.3), floor(0.3, 0.001, 0.3)];
    assert_eq!(verdict(floors, rule), Verdict::Inconclusive);
    assert!(inconclusive_reason(floors, detectable_percent(floors, rule), rule).contains("several modes"));
    assert!(detectable_percent(floors, rule) > 30.0);
}

/// Unchanged rows, 60 in each of 34 comparisons, that were called changed.
fn alarms(side: impl Fn(&str, &[String], u64) -> Head) -> usize {
    let ids: Vec<String> = (0..60).map(|at| format!("call/u64/{at}")).collect();
    let of_round = |round: u64| {
        let comparison = against(&side("old", &ids, 100 + round), &side("new", &ids, 200 + round));
        comparison.changes().filter(|change| change.verdict.is_change()).count()
    };
    (0..34).map(of_round).sum()
}

/// Boots that deviate by 2 % to either side, two processes a boot: were processes the unit, one row in eight would be
/// called changed.
#[test]
fn unchanged_rows_are_hardly_ever_called_changed() {
    let alarms = alarms(|name, ids, seed| {
        let mut head = head_with_cases(name, 5, 2, ids);
        add_noise(&mut head, 0.02, 0.01, seed);
        head
    });
    assert!(alarms <= 20, "at most a hundredth of 2040: {alarms}");
}

/// Sessions of one boot, three processes each, every third process lengthened by up to 30 %.
fn spells(name: &str, ids: &[String], seed: u64) -> Head {
    let mut head = head_with_cases(name, 5, 3, ids);
    add_noise(&mut head, 0.0, 0.003, seed);
    lengthen_some(&mut head, seed);
    join_into_one_boot(&mut head);
    head
}

#[test]
fn spells_of_noise_are_no_changes_and_hide_none() {
    assert!(alarms(spells) <= 20, "at most a hundredth of 2040");
    let slower = |name: &str, ids: &[String], seed| {
        let mut head = spells(name, ids, seed);
        scale_cases(&mut head, "", if name == "new" { 1.05 } else { 1.0 });
        head
    };
    let found = alarms(slower);
    assert!(found >= 1632, "four fifths of 2040 at least: {found}");
}

/// A change as large as a row is said to be able to show is found in 80 of 100 comparisons.
#[test]
fn the_smallest_change_that_is_promised_is_found() {
    let ids: Vec<String> = (0..30).map(|at| format!("call/u64/{at}")).collect();
    let mut found = [0; 2];
    for round in 0..60 {
        let (old, new) = (spells("old", &ids, 1000 + round), spells("new", &ids, 2000 + round));
        let before = against(&old, &new);
        for id in &ids {
            let mut slower = new.clone();
            let percent = change_of(&before, id).detectable_percent.expect("known");
            slower.series.retain(|series| series.id == *id);
            scale_cases(&mut slower, "", 1.0 + percent / 100.0);
            let verdict = change_of(&against(&old, &slower), id).verdict;
            found[usize::from(verdict == Verdict::Slower)] += 1;
        }
    }
    assert!((1350..=1750).contains(&found[1]), "1440 of 1800 are promised: {found:?}");
}
