//! Curves: series of cases whose ids differ only in a size or a number. A group declares a [`Curve`]; a record holds the
//! [`CurveRecord`] that was measured.

use super::Interval;
use serde::{Deserialize, Serialize};

/// A series of cases whose ids begin alike and end in a size or a number.
#[derive(Clone, Copy, Debug)]
pub struct Curve {
    /// The ids' common beginning, with the group: `chase/random/`.
    pub prefix: &'static str,
    /// Its name in the legend of its chart: "random order".
    pub title: &'static str,
    /// Name of its chart. Curves of a group with the same name are drawn together.
    pub chart: &'static str,
    /// How the end of an id is parsed.
    pub axis: Axis,
    /// Name of the derived figure that is drawn; `None` draws the cost of one operation.
    pub figure: Option<&'static str>,
    /// The feature that is searched for in the curve.
    pub study: Study,
    /// A point that needs no measurement, such as one process with the efficiency 1.
    pub start: Option<(u64, f64)>,
}

/// How the last part of an id is parsed; each variant holds the name of the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// A size with its unit: `256KiB`.
    Bytes(&'static str),
    /// A number of mebibytes: `64`.
    Mebibytes(&'static str),
    /// A count, or `all`, which stands for the number of CPUs.
    Count(&'static str),
    /// A count beside the one that measures, or `all`, which stands for one fewer than there are CPUs.
    Others(&'static str),
}

/// The feature that is searched for in a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Study {
    /// No feature: the curve is only drawn.
    Plain,
    /// Levels of latency, and the caches to which they belong.
    Levels,
    /// The one fall of a rate, and the sizes between which it falls.
    Fall,
    /// The parameter at which a growing cost passes this bound, ns.
    Bound(f64),
}

impl Curve {
    /// A curve of the cost of one operation against the size or number at the end of the ids.
    pub const fn new(prefix: &'static str, title: &'static str, axis: Axis) -> Self {
        let (chart, figure, study, start) = ("cost", None, Study::Plain, None);
        Self { prefix, title, chart, axis, figure, study, start }
    }

    /// Draws this derived figure instead of the cost, on a chart of the same name.
    pub const fn with_figure(self, name: &'static str) -> Self {
        Self { figure: Some(name), chart: name, ..self }
    }

    /// Looks for levels or a fall.
    pub const fn with_study(self, study: Study) -> Self {
        Self { study, ..self }
    }

    /// Draws the curve on a chart of this name.
    pub const fn with_chart(self, chart: &'static str) -> Self {
        Self { chart, ..self }
    }

    /// Adds a point that needs no measurement.
    pub const fn with_start(self, at: u64, value: f64) -> Self {
        Self { start: Some((at, value)), ..self }
    }
}

/// A curve as it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CurveRecord {
    /// The ids' common beginning.
    pub prefix: String,
    /// Its name in the legend of its chart.
    pub title: String,
    /// Name of its chart. Curves with the same name are drawn together.
    pub chart: String,
    /// Name of the parameter: "ring", "processes".
    pub parameter: String,
    /// Whether the parameter is a size in bytes; otherwise it is a number.
    pub bytes: bool,
    /// Unit of the values: `ns`, `GB/s`, or nothing for a ratio.
    pub unit: String,
    /// Its points, from the smallest parameter to the largest.
    pub points: Vec<Point>,
    /// Its levels, from the lowest to the highest.
    #[serde(default)]
    pub levels: Vec<LevelRecord>,
    /// The fall of the curve, if one was searched for and found.
    pub fall: Option<FallRecord>,
    /// Remarks in sentences.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The parameter: bytes, or a number.
    pub at: u64,
    /// The value at this parameter.
    pub value: Interval,
}

/// A stretch of constant latency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelRecord {
    /// `L1`, `L2`, `memory`; `None` if it could not be identified.
    pub name: Option<String>,
    /// The smallest size on this level, bytes.
    pub first: u64,
    /// The largest size on this level, bytes.
    pub last: u64,
    /// Latency, ns.
    pub latency: Interval,
    /// Latency in ticks of the counter.
    pub ticks: Option<f64>,
    /// Latency in core cycles, at the frequency inferred from a chain of additions.
    pub cycles: Option<f64>,
    /// Two neighbouring sizes between which it ends, bytes: at the first most loads still hit this level, at the second not.
    pub step: Option<(u64, u64)>,
    /// Size that the kernel reports for the cache that ends at this step, bytes.
    pub reported: Option<u64>,
}

/// Where a curve falls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FallRecord {
    /// The last size before the fall and the first size after it, bytes.
    pub step: (u64, u64),
    /// The median of the values before the fall.
    pub before: Interval,
    /// The median of the values after the fall.
    pub after: Interval,
}

// Headlines: the cases that represent their groups when a whole run is shown on one screen.

/// A case on the first screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headline {
    /// The case's id without the group: `random/256MiB`.
    pub case: &'static str,
    /// The operation in at most [`Headline::LONGEST`] characters.
    pub words: &'static str,
    /// Its place among all rows: below 100 are the rows of the two student reports in their order, then our own.
    pub place: u16,
    /// Name of the derived figure that is shown in place of the cost: `bandwidth`.
    pub figure: Option<&'static str>,
    /// Whether the case is an answer, which is shown on the screen that ends a run.
    pub is_answer: bool,
}

impl Headline {
    /// The most characters of `words`.
    pub const LONGEST: usize = 34;

    /// A headline that shows the cost of this case, at this place among all rows.
    pub const fn new(place: u16, case: &'static str, words: &'static str) -> Self {
        Self { case, words, place, figure: None, is_answer: false }
    }

    /// Shows this derived figure in place of the cost.
    pub const fn with_figure(self, name: &'static str) -> Self {
        Self { figure: Some(name), ..self }
    }

    /// Makes it an answer, which is shown on the screen that ends a run.
    pub const fn as_answer(self) -> Self {
        Self { is_answer: true, ..self }
    }
}
