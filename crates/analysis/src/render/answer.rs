//! The end of the output of a comparison: the answer in one sentence, the rows that matter, and the command that shows the
//! rest.

use syscost_engine::record::verdict::Verdict;
use syscost_engine::render::cell::Tone;
use syscost_engine::render::enumerate_names;
use syscost_engine::render::table::Layout;
use syscost_engine::render::terminal_text::{columns_text, count_with_noun, paint, prose_width, wrap};

/// The most rows that are shown.
const ROWS: usize = 5;

/// A case that was compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared<'a> {
    /// Id of the case.
    pub id: &'a str,
    /// The verdict.
    pub verdict: Verdict,
    /// The new cost divided by the old one, less 1.
    pub change: Option<f64>,
}

impl Compared<'_> {
    fn change_size(&self) -> f64 {
        self.change.filter(|change| change.is_finite()).map_or(0.0, f64::abs)
    }

    fn change_or_verdict(&self) -> String {
        match self.change.filter(|change| change.is_finite()) {
            Some(change) => format!("{:+.1} %", 100.0 * change),
            None => self.verdict.to_string(),
        }
    }
}

/// The whole end of the output; every line ends with a newline. `rest` is the sentence on how to see more.
pub fn render_answer(compared: &[Compared<'_>], rest: &str, layout: Layout) -> String {
    let width = prose_width(layout);
    let is_slower = compared.iter().any(|row| row.verdict == Verdict::Slower);
    let tone = if is_slower { Tone::Red } else { Tone::Bold };
    let mut text = paint(tone, &wrap("", &answer_sentence(compared), width), layout) + "\n";
    let [slower, faster] =
        [Verdict::Slower, Verdict::Faster].map(|verdict| rows_with_verdict(compared, verdict));
    let cells = |row: &Compared| [format!("  {:>9}", row.change_or_verdict()), row.id.to_owned()];
    let rows: Vec<_> = slower.iter().chain(&faster).take(ROWS).map(cells).collect();
    text += &columns_text(&rows, width);
    text + &wrap("", rest, width) + "\n"
}

/// The answer, such as `3 of 40 are slower, the largest by 12.0 %: page_fault/anonymous/4KiB; 1 is faster; 36 are the same`.
pub fn answer_sentence(compared: &[Compared<'_>]) -> String {
    let all = compared.len();
    if all == 0 {
        return "Nothing was compared.".into();
    }
    let rows_with = |verdict| rows_with_verdict(compared, verdict);
    let [slower, faster, same] = [Verdict::Slower, Verdict::Faster, Verdict::Same].map(rows_with);
    let mut parts = Vec::new();
    for (rows, word) in [(&slower, "slower"), (&faster, "faster")] {
        parts.extend(rows.first().map(|largest| {
            let (count, percent) = (count_phrase(rows.len(), all), 100.0 * largest.change_size());
            format!("{count} {word}, the largest by {percent:.1} %: {}", largest.id)
        }));
    }
    if parts.is_empty() && same.is_empty() {
        return format!("No verdict: of {} nothing can be said.", count_with_noun(all, "case", "cases"));
    }
    if parts.is_empty() {
        parts.push("No change was found".into());
    }
    if !same.is_empty() {
        parts.push(format!("{} the same", count_phrase(same.len(), all)));
    }
    let open = all - slower.len() - faster.len() - same.len();
    if open > 0 {
        parts.push(format!("of {open} nothing can be said"));
    }
    parts.join("; ") + "."
}

fn count_phrase(count: usize, all: usize) -> String {
    format!("{count} of {all} {}", if count == 1 { "is" } else { "are" })
}

/// The rows of this verdict, the largest change first.
fn rows_with_verdict<'a>(compared: &[Compared<'a>], verdict: Verdict) -> Vec<Compared<'a>> {
    let mut rows: Vec<_> = compared.iter().filter(|row| row.verdict == verdict).copied().collect();
    rows.sort_by(|a, b| b.change_size().total_cmp(&a.change_size()));
    rows
}

// Joins sentences about cases if they differ only in figures. Each sentence is printed once, with all its cases.

/// One sentence for each group of cases whose sentences differ only in figures. The words and figures are those of
/// the first case.
pub fn group_sentences<'a>(said: impl IntoIterator<Item = (&'a str, String)>) -> Vec<String> {
    let mut groups: Vec<(String, String, Vec<&str>)> = Vec::new();
    for (id, words) in said {
        let shape = sentence_shape(&words);
        match groups.iter_mut().find(|(known, ..)| *known == shape) {
            Some((.., ids)) => ids.push(id),
            None => groups.push((shape, words, vec![id])),
        }
    }
    groups.into_iter().map(|(_, words, ids)| format!("{}: {words}", id_list(&ids))).collect()
}

/// The sentence without its figures and without the name of the side, to compare sentences.
pub fn sentence_shape(words: &str) -> String {
    words
        .replace("side A", "a side")
        .replace("side B", "a side")
        .replace(|c: char| "0123456789.+-".contains(c), "")
}

/// The ids of a group; for more than three, the first two and the number of the others.
pub fn id_list(ids: &[&str]) -> String {
    enumerate_names(ids, "more")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, verdict: Verdict, change: Option<f64>) -> Compared<'_> {
        Compared { id, verdict, change }
    }

    #[test]
    fn the_answer_is_a_plain_sentence() {
        assert_eq!(answer_sentence(&[]), "Nothing was compared.");
        let same = row("a", Verdict::Same, Some(0.001));
        let open = row("o", Verdict::Inconclusive, Some(0.5));
        assert_eq!(answer_sentence(&[open]), "No verdict: of 1 case nothing can be said.");
        assert_eq!(answer_sentence(&[same, same]), "No change was found; 2 of 2 are the same.");
        let rows = [
            row("b", Verdict::Slower, Some(0.02)),
            row("c", Verdict::Slower, Some(0.12)),
            row("d", Verdict::Faster, Some(-0.3)),
            same,
            row("e", Verdict::Inconclusive, None),
        ];
        assert_eq!(
            answer_sentence(&rows),
            "2 of 5 are slower, the largest by 12.0 %: c; 1 of 5 is faster, the largest by 30.0 %: d; 1 of 5 is the \
             same; of 1 nothing can be said."
        );
    }

    #[test]
    fn the_rows_that_matter_are_the_largest_changes_and_the_slower_ones_first() {
        let rows = [
            row("b", Verdict::Slower, Some(0.02)),
            row("d", Verdict::Faster, Some(-0.3)),
            row("c", Verdict::Slower, Some(0.12)),
            row("a", Verdict::Same, Some(0.0)),
        ];
        let text = render_answer(&rows, "The rest: elsewhere.", Layout::default());
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        let at = |words: &str| lines.iter().position(|line| line.starts_with(words)).expect(words);
        assert!(at("+12.0 %") < at("+2.0 %") && at("+2.0 %") < at("-30.0 %"), "{text}");
        assert!(text.ends_with("The rest: elsewhere.\n") && !text.contains("\u{1b}"), "{text}");
    }

    #[test]
    fn equal_sentences_are_printed_once_with_all_cases() {
        let unfit =
            |ratio: &str| format!("4 of 9 were rejected, the last because side B was {ratio} % off side A");
        let said = [
            ("a", unfit("+3.1")),
            ("b", "not shown".to_owned()),
            ("c", unfit("-12.0")),
            ("d", unfit("+1.0").replace("side B", "side A")),
            ("e", unfit("+7")),
        ];
        let grouped = group_sentences(said);
        assert_eq!(grouped, [format!("a, c and 2 more: {}", unfit("+3.1")), "b: not shown".into()]);
        assert_eq!(id_list(&["a", "b", "c"]), "a, b, c", "to name the third is as short as to count it");
    }
}
