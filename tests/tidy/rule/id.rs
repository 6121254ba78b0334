//! Rule: ids are a wire format, and `fixtures/ids.txt` lists them in the order in which the groups run.

use super::group::listed;
use crate::house::House;
use std::collections::HashSet;

const PATH: &str = "fixtures/ids.txt";

/// Criterion cuts a directory's name at this length, and two ids that differ later would share it.
const LONGEST_BYTES: usize = 64;

pub fn complaints(house: &House) -> Vec<String> {
    let ids: Vec<_> = house.text(PATH).lines().collect();
    let mut seen = HashSet::new();
    let mut said = Vec::new();
    for (id, number) in ids.iter().zip(1..) {
        let form =
            (!has_form(id)).then_some("is not group/variant or group/variant/parameter of at most 64 bytes");
        let twice = (!seen.insert(id)).then_some("stands here for the second time");
        said.extend(form.into_iter().chain(twice).map(|why| format!("{PATH}:{number}: {id} {why}")));
    }
    said.extend(order_complaint(&ids, &listed(house.text("src/suite.rs"))));
    said
}

fn has_form(id: &str) -> bool {
    let parts: Vec<_> = id.split('/').collect();
    let is_plain = |part: &&str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c))
    };
    let is_short = id.split_once('/').is_some_and(|(_, name)| name.len() <= LONGEST_BYTES);
    (2..=3).contains(&parts.len()) && parts.iter().all(is_plain) && is_short
}

fn order_complaint(ids: &[&str], groups: &[&str]) -> Option<String> {
    let mut order: Vec<_> = ids.iter().filter_map(|id| id.split('/').next()).collect();
    order.dedup();
    let sentence =
        || format!("{PATH}: its groups are {}, but they run as {}", order.join(", "), groups.join(", "));
    (order != groups).then(sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_on(ids: &str) -> Vec<String> {
        let groups = "pub const GROUPS: &[Group] = &[call::GROUP, pipe::GROUP];";
        complaints(&House::default().with(PATH, ids).with("src/suite.rs", groups))
    }

    #[test]
    fn ids_have_a_form() {
        assert_eq!(complaints_on("call/u32/0\ncall/plt\npipe/64KiB\n"), [""; 0]);
        for id in ["call", "call/a/b/c", "call//a", "call/a b", "call/µ", &format!("call/{}", "a".repeat(65))]
        {
            assert_eq!(complaints_on(&format!("{id}\npipe/1B\n")).len(), 1, "{id}");
        }
    }

    #[test]
    fn an_id_stands_once() {
        assert_eq!(
            complaints_on("call/a\ncall/a\npipe/1B\n"),
            ["fixtures/ids.txt:2: call/a stands here for the second time"]
        );
    }

    #[test]
    fn groups_stand_in_the_order_in_which_they_run() {
        assert_eq!(complaints_on("pipe/1B\ncall/a\n").len(), 1);
        assert_eq!(complaints_on("call/a\npipe/1B\ncall/b\n").len(), 1);
    }
}
