//! Sentences about cases, each said once for all the cases that it is about: a comparison of everything has hundreds.

use crate::render::enumerated;

/// A sentence for each group of cases that the same is said of: the words of the first, whose figures are its own.
pub fn grouped<'a>(said: impl IntoIterator<Item = (&'a str, String)>) -> Vec<String> {
    let mut groups: Vec<(String, String, Vec<&str>)> = Vec::new();
    for (id, words) in said {
        let shape = shape(&words);
        match groups.iter_mut().find(|(known, ..)| *known == shape) {
            Some((.., ids)) => ids.push(id),
            None => groups.push((shape, words, vec![id])),
        }
    }
    groups.into_iter().map(|(_, words, ids)| format!("{}: {words}", id_list(&ids))).collect()
}

/// The words without figures, and without which side it was.
pub fn shape(words: &str) -> String {
    words
        .replace("side A", "a side")
        .replace("side B", "a side")
        .replace(|c: char| "0123456789.+-".contains(c), "")
}

/// The ids of a group, or the first two and how many more.
pub fn id_list(ids: &[&str]) -> String {
    enumerated(ids, "more")
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
        let told = grouped(said);
        assert_eq!(told, [format!("a, c and 2 more: {}", unfit("+3.1")), "b: not shown".into()]);
        assert_eq!(id_list(&["a", "b", "c"]), "a, b, c", "to name the third is as short as to count it");
    }
}
