//! Which cases are points of a curve: the ids that begin alike and end in a size or a number. A series is one line
//! here, and its group need not know.

use super::Group;
use crate::record::{Axis, Curve, Study};

use Axis::{Bytes, Count, Mebibytes};
use Study::Levels;

/// All curves. Those of a group and of one chart are drawn together.
#[rustfmt::skip]
pub const CURVES: &[Curve] = &[
    Curve::new("chase/random/", "random order", Bytes("size of the ring")).study(Levels).chart("latency"),
    Curve::new("mapping/first-touch/", "first touch", Bytes("memory")),
    Curve::new("context_switch/processes-2/", "2 processes", Bytes("memory of each")),
    Curve::new("context_switch/processes-4/", "4 processes", Bytes("memory of each")),
    Curve::new("context_switch/processes-8/", "8 processes", Bytes("memory of each")),
    Curve::new("context_switch/processes-16/", "16 processes", Bytes("memory of each")),
    Curve::new("context_switch/processes-32/", "32 processes", Bytes("memory of each")),
    Curve::new("context_switch/processes-96/", "96 processes", Bytes("memory of each")),
    Curve::new("scale/getppid-processes/", "getppid, processes", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("scale/getppid-threads/", "getppid, threads", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("scale/pipe-processes/", "pipe, processes", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("scale/pipe-threads/", "pipe, threads", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("scale/fresh-page-processes/", "fresh page, processes", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("scale/fresh-page-threads/", "fresh page, threads", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("scale/open-close-processes/", "open and close, processes", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("scale/open-close-threads/", "open and close, threads", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("fork/touched-mib/", "touched memory", Mebibytes("memory of the parent")),
    Curve::new("fork/returns-mib/", "touched memory, until fork returns", Mebibytes("memory of the parent")),
    Curve::new("fork/huge-mib/", "the same in huge pages", Mebibytes("memory of the parent")),
    Curve::new("fork/mappings/", "mappings", Count("mappings")).chart("mappings"),
];

impl Group {
    /// The curves through its cases.
    pub fn curves(&self) -> impl Iterator<Item = &'static Curve> {
        CURVES.iter().filter(|curve| curve.prefix.split('/').next() == Some(self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::GROUPS;

    #[test]
    fn every_curve_has_cases_and_no_two_have_the_same() {
        let ids: Vec<String> = GROUPS
            .iter()
            .flat_map(|group| (group.cases)().iter().map(|case| group.id(case)).collect::<Vec<_>>())
            .collect();
        for (at, curve) in CURVES.iter().enumerate() {
            let points = ids.iter().filter(|id| id.starts_with(curve.prefix)).count();
            assert!(points >= 2, "{} has {points} points", curve.prefix);
            assert!(curve.prefix.ends_with('/'), "{}: another series may begin alike", curve.prefix);
            assert!(CURVES[..at].iter().all(|other| other.prefix != curve.prefix), "{}", curve.prefix);
        }
    }
}
