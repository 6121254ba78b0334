//! The cases that stand for their groups where a whole run is shown on one screen.

/// A case on the first screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headline {
    /// Its id without the group: `random/256MiB`.
    pub case: &'static str,
    /// The operation in at most [`Headline::LONGEST`] characters.
    pub words: &'static str,
    /// Its place among all rows: below 100 the rows of the two student reports in their order, then ours.
    pub place: u16,
    /// Name of the derived figure that is shown in place of the cost: `bandwidth`.
    pub figure: Option<&'static str>,
    /// Whether it is among the answers on the screen that ends a run.
    pub is_answer: bool,
}

impl Headline {
    /// The most characters of its words.
    pub const LONGEST: usize = 34;

    /// The cost of a case, at this place among all rows.
    pub const fn new(place: u16, case: &'static str, words: &'static str) -> Self {
        Self { case, words, place, figure: None, is_answer: false }
    }

    /// Tells this derived figure in place of the cost.
    pub const fn with_figure(self, name: &'static str) -> Self {
        Self { figure: Some(name), ..self }
    }

    /// Shows it on the screen that ends a run.
    pub const fn as_answer(self) -> Self {
        Self { is_answer: true, ..self }
    }
}
