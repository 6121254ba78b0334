//! A change in few characters, in the style of mmtests: stars around a significant change, brackets around others.

use crate::study::comparison::Change;
use syscost_engine::record::quantity;
use syscost_engine::record::verdict::Verdict;

/// The legend of the marks, printed above every table.
pub const LEGEND: &str = "+ is slower (it takes more), - is faster. *+5.2%* changed, (+0.3%) the same, \
    (+3.1%)? neither is shown, ! not comparable.";

impl Change {
    /// The change with the mark of its verdict.
    pub fn mark(&self) -> String {
        let size = self.ratio.map(quantity::format_change).unwrap_or_default();
        match self.verdict {
            Verdict::Slower | Verdict::Faster => format!("*{size}*"),
            Verdict::Same => format!("({size})"),
            Verdict::Inconclusive => format!("({size})?"),
            Verdict::Incomparable => "!".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legend_shows_every_mark() {
        let marks = [
            (Verdict::Slower, 1.052),
            (Verdict::Same, 1.003),
            (Verdict::Inconclusive, 1.031),
            (Verdict::Incomparable, 1.0),
        ];
        for (verdict, ratio) in marks {
            let mark = Change { verdict, ratio: Some(ratio), ..Change::default() }.mark();
            assert!(LEGEND.contains(&format!("{mark} ")), "{mark}");
        }
    }
}
