//! A flat profile of a program, and the rule that 90 % of the time is spent in 10 % of the code.
//!
//! Source: Kraemer, slides 38 and 56; gprof's flat profile.

/// One routine of a profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<'a> {
    /// Its name, as the caller gave it.
    pub name: &'a str,
    /// The number of its calls.
    pub calls: u64,
    /// Time in the routine itself, without the routines that it called, in the caller's unit.
    pub own: f64,
    /// The cumulative share of the total time: that of this routine and of all rows before it.
    pub up_to_here: f64,
}

/// The profile of routines, each given as name, number of calls and own time. The most expensive routine is first.
pub fn flat_profile<'a>(routines: impl IntoIterator<Item = (&'a str, u64, f64)>) -> Vec<Row<'a>> {
    let mut rows: Vec<_> =
        routines.into_iter().map(|(name, calls, own)| Row { name, calls, own, up_to_here: 0.0 }).collect();
    rows.sort_by(|a, b| b.own.total_cmp(&a.own));
    let all: f64 = rows.iter().map(|row| row.own).sum();
    let mut sum = 0.0;
    for row in &mut rows {
        sum += row.own;
        row.up_to_here = if all > 0.0 { sum / all } else { 0.0 };
    }
    rows
}

/// The share of the routines, the most expensive first, that together take `share` of the time.
pub fn routine_share_for_time(rows: &[Row], share: f64) -> f64 {
    let needed = rows.iter().position(|row| row.up_to_here >= share).map_or(rows.len(), |at| at + 1);
    needed as f64 / rows.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_routine_of_ten_takes_nine_tenths_of_the_time() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let rows = flat_profile(names.map(|name| (name, 1, if name == "g" { 81.0 } else { 1.0 })));
        assert_eq!((rows[0].name, rows[0].up_to_here), ("g", 0.9));
        assert_eq!(routine_share_for_time(&rows, 0.9), 0.1);
        assert_eq!(routine_share_for_time(&rows, 0.95), 0.6);
        assert_eq!(rows[9].up_to_here, 1.0);
    }

    #[test]
    fn a_program_that_took_no_time_has_no_shares() {
        let rows = flat_profile([("a", 0, 0.0)]);
        assert_eq!((rows[0].up_to_here, routine_share_for_time(&rows, 0.9)), (0.0, 1.0));
        assert_eq!(routine_share_for_time(&[], 0.9), 0.0);
    }
}
