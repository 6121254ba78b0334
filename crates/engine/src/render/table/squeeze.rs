//! Fits the table to the terminal: the least important columns are dropped first.

use super::column::Column;
use super::{Shape, Sheet, display_width, table_lines};

/// On a terminal with fewer columns the parts of a prediction and the typical cost are hidden even if they fit,
/// because a crowded line is hard to read.
const ROOMY: usize = 120;

/// A way to make the table narrower: a column goes, or a shorter form takes its place.
type Step = (Column, Option<Column>);

/// The columns that a narrow terminal does not show.
const NARROW: [Step; 4] = [
    (Column::Evidence, Some(Column::Claims)),
    (Column::Hardware, None),
    (Column::Software, None),
    (Column::Typical, None),
];

/// The columns that are dropped next, in this order, until the table fits. The prediction goes before its parts, whose
/// sum it is; the operation and its median stay.
const STEPS: [Step; 12] = [
    (Column::Evidence, Some(Column::Claims)),
    (Column::Interval, Some(Column::Share)),
    (Column::Predicted, None),
    (Column::Hardware, None),
    (Column::Software, None),
    (Column::Typical, None),
    (Column::Ticks, None),
    (Column::Net, None),
    (Column::Claims, None),
    (Column::Ratio, None),
    (Column::Share, None),
    (Column::Rate, None),
];

/// The columns for this width, and the longest name of an operation that fits.
pub fn fit_to_width(sheet: &Sheet<'_>, limit: Option<u16>) -> Shape {
    let limit = limit.map_or(usize::MAX, usize::from);
    let mut shape =
        Shape { columns: Column::all_for_sheet(sheet), hidden: Vec::new(), longest: usize::MAX, width: 0 };
    if limit < ROOMY {
        NARROW.into_iter().for_each(|step| shape.apply_step(step));
    }
    for step in STEPS {
        if table_width(sheet, &shape) > limit {
            shape.apply_step(step);
        }
    }
    shorten_operations(sheet, &mut shape, limit);
    shape.width = table_width(sheet, &shape);
    shape
}

impl Shape {
    fn apply_step(&mut self, (column, shorter): Step) {
        let Some(place) = self.columns.iter().position(|other| *other == column) else { return };
        match shorter {
            Some(shorter) => self.columns[place] = shorter,
            None => {
                self.columns.remove(place);
                self.hidden.push(column.name());
            }
        }
    }
}

fn table_width(sheet: &Sheet<'_>, shape: &Shape) -> usize {
    table_lines(sheet, &shape.columns, shape.longest)
        .iter()
        .map(|line| display_width(line))
        .max()
        .unwrap_or(0)
}

/// The last resort on a very narrow terminal.
fn shorten_operations(sheet: &Sheet<'_>, shape: &mut Shape, limit: usize) {
    let excess = table_width(sheet, shape).saturating_sub(limit);
    if excess > 0 {
        let longest = sheet.visible_rows().map(|row| display_width(row.operation_name())).max().unwrap_or(0);
        shape.longest = longest.saturating_sub(excess).max(Column::Operation.name().len());
    }
}
