//! Joins sentences about cases that differ only in figures: each is printed once, with all its cases.

use syscost_engine::render::enumerate_names;

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

/// The ids of a group, or the first two and how many more.
pub fn id_list(ids: &[&str]) -> String {
    enumerate_names(ids, "more")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_several_is_said_once() {
        let unfit =
            |ratio: &str| format!("4 of 9 were rejected, the last because side B was {ratio} % off side A");
        let said = [
            ("a", unfit("+3.1")),
            ("b", "not shown".to_owned()),
            ("c", unfit("-12.0")),
            ("d", unfit("+1.0").replace("side B", "side A")),
            ("e", unfit("+7")),
        ];
        let told = group_sentences(said);
        assert_eq!(told, [format!("a, c and 2 more: {}", unfit("+3.1")), "b: not shown".into()]);
        assert_eq!(id_list(&["a", "b", "c"]), "a, b, c", "to name the third is as short as to count it");
    }
}
