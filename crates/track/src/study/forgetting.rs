//! The selection of points that are removed from a history: by age, label, case and number, or all but one a week. The remaining
//! ratios must stay unchanged.

use super::change_event::find_change_events;
use super::ratio_series::build_ratio_series;
use crate::record::history_point::{CaseRatio, HistoryPoint};
use std::collections::BTreeSet;
use syscost_analysis::study::gate::SECONDS_A_DAY;

/// Seconds of a week.
const WEEK: u64 = 7 * SECONDS_A_DAY;

/// The points to remove: those that meet all of the given conditions.
#[derive(Default)]
pub struct Forgetting<'a> {
    /// Points that began before this time, Unix seconds.
    pub before: Option<u64>,
    /// Points with this label.
    pub label: Option<&'a str>,
    /// All points but this number of the newest.
    pub keep_last: Option<usize>,
    /// All points but the first of each week.
    pub weekly: bool,
    /// If given, only these cases of the points are removed.
    pub case: Option<&'a dyn Fn(&str) -> bool>,
}

/// A history without the removed points.
pub struct Pruned {
    /// Each point as it stays; `None` for a point that is removed.
    pub points: Vec<Option<HistoryPoint>>,
    /// The number of points that are removed.
    pub gone: usize,
    /// The number of cases that are removed from points that stay.
    pub cases: usize,
    /// The number of points that stay only because they name the reference of the others.
    pub needed: usize,
    /// The number of events before and after the removal.
    pub events: [usize; 2],
}

impl Forgetting<'_> {
    /// Removes the chosen points or cases. Bridges stay, and so does the first point if it alone names the
    /// reference to which all others are compared.
    pub fn prune(&self, points: &[HistoryPoint]) -> Pruned {
        let chosen = self.points_to_forget(points);
        let stays = |case: &CaseRatio| !self.case.is_some_and(|is_meant| is_meant(&case.id));
        let left = |at: usize| -> Option<HistoryPoint> {
            let point = &points[at];
            match (chosen.contains(&at), self.case) {
                (false, _) => Some(point.clone()),
                (true, None) => None,
                (true, Some(_)) => {
                    let cases: Vec<_> = point.cases.iter().filter(|case| stays(case)).cloned().collect();
                    (!cases.is_empty()).then(|| point.with_cases(cases))
                }
            }
        };
        let mut kept: Vec<_> = (0..points.len()).map(left).collect();
        let is_needed = first_reference(kept.iter().flatten())
            .is_some_and(|base| Some(base) != self::first_reference(points.iter()));
        let needed = usize::from(is_needed);
        if is_needed {
            // The point stays with all cases, so that its checksum stays valid.
            kept[0] = points.first().cloned();
        }
        let whole: Vec<_> = kept.iter().flatten().cloned().collect();
        let count_cases =
            |points: &[HistoryPoint]| points.iter().map(|point| point.cases.len()).sum::<usize>();
        let gone_cases = points.iter().zip(&kept).filter(|(_, left)| left.is_none());
        let gone_cases: usize = gone_cases.map(|(point, _)| point.cases.len()).sum();
        Pruned {
            gone: points.len() - whole.len(),
            cases: count_cases(points) - count_cases(&whole) - gone_cases,
            needed,
            events: [points, &whole]
                .map(|points| find_change_events(points, &build_ratio_series(points).0).len()),
            points: kept,
        }
    }

    /// The indexes of the points that meet the conditions, without bridges.
    fn points_to_forget(&self, points: &[HistoryPoint]) -> BTreeSet<usize> {
        let regular: Vec<usize> = (0..points.len()).filter(|at| points[*at].bridge_to.is_none()).collect();
        let older = regular.len().saturating_sub(self.keep_last.unwrap_or(0));
        let mut weeks = BTreeSet::new();
        let mut is_meant = |at: &usize| {
            let point = &points[*at];
            let in_age = self.before.is_none_or(|before| point.started < before);
            let in_name = self.label.is_none_or(|label| point.label == label);
            // This condition is last: the first point of a week is the first that meets the other conditions.
            in_age
                && in_name
                && (!self.weekly || !weeks.insert((point.reference.clone(), point.started / WEEK)))
        };
        regular[..older].iter().copied().filter(|at| is_meant(at)).collect()
    }
}

/// The reference of the first point, to which all ratios refer.
fn first_reference<'a>(mut points: impl Iterator<Item = &'a HistoryPoint>) -> Option<&'a str> {
    points.next().map(|point| point.reference.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::ratio_series::tests::test_point;
    use super::*;

    /// Ten nights against r0, a bridge, ten nights against r1.
    fn nights() -> Vec<HistoryPoint> {
        let night = |night| test_point(night, if night < 10 { "r0" } else { "r1" }, None, &[1.0, 1.01]);
        let mut points: Vec<_> = (0..10).map(night).collect();
        points.push(test_point(10, "r0", Some("r1"), &[1.02, 1.03]));
        points.extend((10..20).map(night));
        points
    }

    fn left(forgetting: &Forgetting) -> (Vec<HistoryPoint>, Pruned) {
        let forgotten = forgetting.prune(&nights());
        (forgotten.points.iter().flatten().cloned().collect(), forgotten)
    }

    /// Asserts that every ratio that is left is unchanged.
    fn assert_ratios_unchanged(points: &[HistoryPoint]) {
        let values = |points: &[HistoryPoint]| -> Vec<(String, String, f64)> {
            let link = |id: &str, link: &super::super::ratio_series::Link| {
                (id.to_owned(), points[link.point].run.clone(), link.value.value)
            };
            build_ratio_series(points)
                .0
                .iter()
                .flat_map(|one| one.links.iter().map(|l| link(&one.id, l)).collect::<Vec<_>>())
                .collect()
        };
        let before = values(&nights());
        assert!(values(points).iter().all(|value| before.contains(value)));
    }

    #[test]
    fn a_bridge_stays_when_all_points_before_it_are_removed() {
        let (points, forgotten) = left(&Forgetting { keep_last: Some(5), ..Forgetting::default() });
        assert_eq!((points.len(), forgotten.gone, forgotten.needed), (6, 15, 0));
        assert_eq!(points[0].bridge_to.as_deref(), Some("r1"));
        assert_ratios_unchanged(&points);
    }

    #[test]
    fn the_first_point_stays_if_only_it_names_the_first_reference() {
        let mut points = nights();
        points.remove(10);
        let forgotten = Forgetting { keep_last: Some(5), ..Forgetting::default() }.prune(&points);
        assert_eq!((forgotten.needed, forgotten.gone), (1, 14));
        assert_eq!(forgotten.points[0].as_ref().map(|point| point.run.as_str()), Some("run-0"));
    }

    #[test]
    fn one_point_of_each_week_is_left() {
        let (points, _) = left(&Forgetting { weekly: true, ..Forgetting::default() });
        let regular: Vec<_> = points.iter().filter(|point| point.bridge_to.is_none()).collect();
        let weeks: BTreeSet<_> =
            regular.iter().map(|point| (&point.reference, point.started / WEEK)).collect();
        assert_eq!(regular.len(), weeks.len());
        assert_ratios_unchanged(&points);
    }

    #[test]
    fn one_case_is_forgotten_and_the_others_stay() {
        let is_meant = |id: &str| id == "group/1";
        let (points, forgotten) = left(&Forgetting { case: Some(&is_meant), ..Forgetting::default() });
        assert_eq!((forgotten.gone, forgotten.cases), (0, 20));
        assert!(
            points.iter().all(|point| point.cases.len() == if point.bridge_to.is_some() { 2 } else { 1 })
        );
        assert_ratios_unchanged(&points);
    }

    #[test]
    fn points_must_meet_both_age_and_label() {
        let before = nights()[3].started;
        let by = |label| Forgetting { before: Some(before), label, ..Forgetting::default() };
        assert_eq!(left(&by(None)).1.gone, 3);
        assert_eq!(left(&by(Some("revision 1"))).1.gone, 1);
        assert_eq!(left(&by(Some("revision 9"))).1.gone, 0);
    }
}
