//! Fits the table to the terminal: the least important columns are dropped first.

use super::column::Column;
use super::{Shape, Sheet, lines, width};

/// Below this many columns the parts of a prediction and the deviation are left out even if they fit: a
/// crowded line is not read.
const ROOMY: usize = 120;

/// A way to make the table narrower.
#[derive(Clone, Copy)]
enum Step {
    Drop(Column),
    /// A shorter form of a column.
    Swap(Column, Column),
}

/// The columns that a narrow terminal does not show.
const NARROW: [Step; 4] = [
    Step::Swap(Column::Evidence, Column::Claims),
    Step::Drop(Column::Hardware),
    Step::Drop(Column::Software),
    Step::Drop(Column::Typical),
];

/// The columns that are dropped next, in this order, until the table fits. The prediction goes before its parts, whose
/// sum it is; the operation and its median stay.
const STEPS: [Step; 12] = [
    Step::Swap(Column::Evidence, Column::Claims),
    Step::Swap(Column::Interval, Column::Share),
    Step::Drop(Column::Predicted),
    Step::Drop(Column::Hardware),
    Step::Drop(Column::Software),
    Step::Drop(Column::Typical),
    Step::Drop(Column::Ticks),
    Step::Drop(Column::Net),
    Step::Drop(Column::Claims),
    Step::Drop(Column::Ratio),
    Step::Drop(Column::Share),
    Step::Drop(Column::Bandwidth),
];

/// The columns for this width, and the longest name of an operation that fits.
pub(super) fn shape(sheet: &Sheet<'_>, limit: Option<u16>) -> Shape {
    let limit = limit.map_or(usize::MAX, usize::from);
    let mut shape = Shape { columns: Column::all(sheet), hidden: Vec::new(), longest: usize::MAX, width: 0 };
    if limit < ROOMY {
        NARROW.into_iter().for_each(|step| shape.take(step));
    }
    for step in STEPS {
        if widest(sheet, &shape) > limit {
            shape.take(step);
        }
    }
    shorten_operations(sheet, &mut shape, limit);
    shape.width = widest(sheet, &shape);
    shape
}

impl Shape {
    fn take(&mut self, step: Step) {
        let place = |wanted| self.columns.iter().position(|column| *column == wanted);
        match step {
            Step::Drop(column) => {
                if let Some(i) = place(column) {
                    self.columns.remove(i);
                    self.hidden.push(column.name());
                }
            }
            Step::Swap(long, short) => {
                if let Some(i) = place(long) {
                    self.columns[i] = short;
                }
            }
        }
    }
}

fn widest(sheet: &Sheet<'_>, shape: &Shape) -> usize {
    lines(sheet, &shape.columns, shape.longest).iter().map(|line| width(line)).max().unwrap_or(0)
}

/// The last resort on a very narrow terminal.
fn shorten_operations(sheet: &Sheet<'_>, shape: &mut Shape, limit: usize) {
    let excess = widest(sheet, shape).saturating_sub(limit);
    if excess > 0 {
        let longest = sheet.listed().map(|row| width(row.operation())).max().unwrap_or(0);
        shape.longest = longest.saturating_sub(excess).max(Column::Operation.name().len());
    }
}
