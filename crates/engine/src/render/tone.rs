//! The colours of lines.

use crate::record::Verdict;

/// Emphasis of a line or a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Bold,
    Green,
    Yellow,
    Red,
}

impl Tone {
    /// The tone of a row with this verdict; `Same` is plain.
    pub fn from_verdict(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Slower => Self::Red,
            Verdict::Faster => Self::Bold,
            Verdict::Inconclusive | Verdict::Incomparable => Self::Yellow,
            Verdict::Same => Self::Plain,
        }
    }

    /// The text in this tone, if it is shown in colours. Give it whole lines, or cells that are padded already: the escape
    /// codes have no width.
    pub fn paint(self, text: &str, color: bool) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            _ if !color => return text.to_owned(),
            Self::Bold => 1,
            Self::Green => 32,
            Self::Yellow => 33,
            Self::Red => 31,
        };
        let painted: Vec<_> = text.split('\n').map(|line| format!("\u{1b}[{code}m{line}\u{1b}[0m")).collect();
        painted.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_painted_by_itself() {
        assert_eq!(Tone::Bold.paint("a\nb", true), "\u{1b}[1ma\u{1b}[0m\n\u{1b}[1mb\u{1b}[0m");
        assert_eq!((Tone::Bold.paint("a", false), Tone::Plain.paint("a", true)), ("a".into(), "a".into()));
    }
}
