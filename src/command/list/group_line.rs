//! A line a group: how many cases it has and what they spread over.

use super::{Row, count_runnable, runnable_tally};
use crate::command::page;
use crate::render::table::Layout;

/// A line a group, and how to see the cases.
pub fn groups_table(rows: &[Row], layout: Layout) -> String {
    let head =
        ["group", "here", "cases", "variants, and the first and the last parameter of the longest series"];
    let groups = rows.chunk_by(|a, b| a.group == b.group);
    let lines = groups.map(|rows| (page::Tone::Plain, group_cells(rows)));
    page::table(head, lines, page::table_width(layout), layout)
        + &runnable_tally(rows)
        + "`syscost list ^GROUP/` or `syscost list --all` names them\n"
}

fn group_cells(rows: &[Row]) -> [String; 4] {
    let group = rows.first().map_or("", |row| row.group);
    [group.into(), count_runnable(rows).to_string(), rows.len().to_string(), parameter_spread(rows)]
}

/// `89 variants`, `u32 … plt, f32 0 to 8`.
fn parameter_spread(rows: &[Row]) -> String {
    let names: Vec<&str> = rows.iter().map(case_name).collect();
    let series: Vec<Vec<&str>> =
        names.chunk_by(|a, b| variant_part(a) == variant_part(b)).map(<[_]>::to_vec).collect();
    let shown: Vec<&str> = series.iter().filter_map(|of| Some(variant_part(of.first()?))).collect();
    let variants = match shown.as_slice() {
        [first, .., last] if shown.len() > 4 => format!("{first} … {last} ({})", shown.len()),
        few => few.join(", "),
    };
    match series.iter().max_by_key(|of| of.len()).map(Vec::as_slice) {
        Some([first, .., last]) => {
            format!(
                "{variants}; {} {} to {}",
                variant_part(first),
                parameter_part(first),
                parameter_part(last)
            )
        }
        _ => variants,
    }
}

/// The id without the group.
fn case_name(row: &Row) -> &str {
    row.id.split_once('/').map_or(row.id.as_str(), |(_, name)| name)
}

fn variant_part(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

fn parameter_part(name: &str) -> &str {
    name.split_once('/').map_or("", |(_, parameter)| parameter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, missing: Option<&str>) -> Row {
        Row { group: "call", id: id.into(), title: String::new(), missing: missing.map(str::to_owned) }
    }

    #[test]
    fn a_group_is_a_line_with_its_counts_and_its_longest_series() {
        let rows = [row("call/u32/0", None), row("call/u32/8", None), row("call/dyn", Some("no"))];
        let text = groups_table(&rows, Layout::default());
        assert!(text.contains("call   2     3      u32, dyn; u32 0 to 8"), "{text}");
        assert!(text.contains("2 of 3 cases can run here"), "{text}");
    }

    #[test]
    fn many_variants_are_named_by_the_first_and_the_last() {
        let rows: Vec<Row> = ["a", "b", "c", "d", "e"].map(|name| row(&format!("call/{name}"), None)).into();
        assert_eq!(parameter_spread(&rows), "a … e (5)");
    }
}
