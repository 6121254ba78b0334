//! The one writer of tables in Markdown, as forges and wikis show them.

/// A table: its heads, the columns that are text (numbers end at the right), and its rows. A bar in a cell is escaped, and a line
/// break becomes a blank.
pub fn markdown_table(
    heads: impl IntoIterator<Item = impl Into<String>>,
    is_text: impl Fn(usize) -> bool,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let heads: Vec<String> = heads.into_iter().map(Into::into).collect();
    let rule = (0..heads.len()).map(|column| if is_text(column) { ":--" } else { "--:" });
    let mut text = table_line(heads.iter()) + &table_line(rule);
    text.extend(rows.into_iter().map(|row| table_line(row.iter())));
    text
}

fn table_line(cells: impl Iterator<Item = impl AsRef<str>>) -> String {
    let cells: Vec<String> = cells.map(|cell| cell.as_ref().replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_breaks_no_row_and_numbers_end_at_the_right() {
        let row = vec!["a|b\nc".to_owned(), "1".to_owned()];
        let text = markdown_table(["case", "ns"], |column| column == 0, [row]);
        assert_eq!(text, "| case | ns |\n| :-- | --: |\n| a\\|b c | 1 |\n");
    }
}
