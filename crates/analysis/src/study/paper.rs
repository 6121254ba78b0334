//! The paper that the group `displacement` redoes (Woodside, Courtois and Schramm 1997): its four tables, compiled in,
//! and its figures with the curves of a run beside the published ones.

pub mod fixture_paper;
mod paper_figure;
mod separate_prediction;

pub use paper_figure::{Figure, figures};
pub use separate_prediction::SeparatePrediction;

use crate::error::Result;
use serde::Deserialize;
use syscost_engine::record::{Displaced, Record};
use syscost_engine::study::published::parse_compiled_in;

/// The group whose cases fill the tables.
pub const GROUP: &str = "displacement";

/// The case of multiplications by themselves, without the group, and their number. The cost of a sender's computation follows from
/// it, by the number of multiplications of the sender.
const COMPUTATION: (&str, f64) = ("computation/120000", 120_000.0);

const TEXT: &str = include_str!("../../fixtures/published/woodside1997.toml");

/// The four tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The machine.
    pub source: String,
    /// Table 1.
    pub compute: Vec<Cost>,
    /// Table 2.
    pub send: Vec<Cost>,
    /// Table 3.
    pub throughput: Vec<Rate>,
    /// Table 4.
    pub loops: Vec<Spread>,
}

/// A cost by both methods, µs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Our case, without the group; of table 2 without the way as well.
    pub id: String,
    /// By the kernel's accounts.
    pub accounting: f64,
    /// By displacement.
    pub displacement: f64,
    /// Displacement over accounting, less 1, percent.
    pub percent: f64,
}

/// Messages a second.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Our case of six senders, without the group as all of these.
    pub id: String,
    /// That of a message by itself.
    pub send: String,
    /// That of one sender, which computes while its message is under way.
    pub sender: String,
    /// As measured.
    pub real: f64,
    /// Predicted from displacement.
    pub displacement: f64,
    /// Its error, percent.
    pub displacement_percent: f64,
    /// Predicted from accounting.
    pub accounting: f64,
    /// Its error, percent.
    pub accounting_percent: f64,
}

/// Mean and deviation over 20 runs, µs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Our case, without the group.
    pub id: String,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// Standard deviation in percent of the mean.
    pub percent: f64,
    /// Half of an interval of 95 %.
    pub half: f64,
}

/// The displacement record of a case of the group, by its id without the group.
pub fn find_displacement<'a>(record: &'a Record, name: &str) -> Option<&'a Displaced> {
    let id = format!("{GROUP}/{name}");
    record.cases().find(|(_, case)| case.id == id)?.1.measured()?.displaced.as_ref()
}

impl Paper {
    /// Parses the tables that are compiled in.
    ///
    /// # Errors
    /// The compiled file is no TOML of this layout.
    pub fn read() -> Result<Self> {
        parse_compiled_in("woodside1997", TEXT, "four tables")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rate_names_cases_that_there_are() {
        let ids = include_str!("../../../../fixtures/ids.txt");
        let rows = Paper::read().expect("four tables").throughput;
        let named = rows.into_iter().flat_map(|row| [row.id, row.send, row.sender]);
        for part in named.chain([COMPUTATION.0.into()]) {
            assert!(ids.lines().any(|id| id == format!("{GROUP}/{part}")), "{part}");
        }
        assert_eq!(COMPUTATION.0, format!("computation/{}", COMPUTATION.1));
    }

    #[test]
    fn percentages_are_those_of_the_numbers_beside_them() {
        let paper = Paper::read().expect("four tables");
        assert_eq!(
            [paper.compute.len(), paper.send.len(), paper.throughput.len(), paper.loops.len()],
            [8, 8, 8, 5]
        );
        for row in paper.compute.iter().chain(&paper.send) {
            let percent = 100.0 * (row.displacement / row.accounting - 1.0);
            assert!((percent - row.percent).abs() < 0.2, "{}: {percent}", row.id);
        }
        for row in &paper.throughput {
            for (rate, percent) in
                [(row.displacement, row.displacement_percent), (row.accounting, row.accounting_percent)]
            {
                let off = 100.0 * (rate / row.real - 1.0);
                assert!((off - percent).abs() < 0.02, "{}: {off}", row.id);
            }
        }
        for row in &paper.loops {
            assert!((100.0 * row.deviation / row.mean - row.percent).abs() < 0.01, "{}", row.id);
        }
    }
}
