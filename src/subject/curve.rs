//! Which cases are points of a curve: the ids that begin alike and end in a size or a number. A series is one line
//! here, and its group need not know.

use super::Group;
use crate::record::{Axis, Curve, Study};

use Axis::{Bytes, Count, Mebibytes};
use Study::Levels;

/// All curves. Those of a group and of one chart are drawn together.
#[rustfmt::skip]
pub const CURVES: &[Curve] = &[
    Curve::new("chase/random/", "random order", Bytes("ring")).study(Levels).chart("latency"),
    Curve::new("mapping/first-touch/", "first touch", Bytes("memory")),
    Curve::new("context_switch/processes-2/", "2 processes", Bytes("memory of each")),
    Curve::new("context_switch/processes-4/", "4 processes", Bytes("memory of each")),
    Curve::new("context_switch/processes-8/", "8 processes", Bytes("memory of each")),
    Curve::new("context_switch/processes-16/", "16 processes", Bytes("memory of each")),
    Curve::new("context_switch/processes-32/", "32 processes", Bytes("memory of each")),
    Curve::new("context_switch/processes-96/", "96 processes", Bytes("memory of each")),
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
