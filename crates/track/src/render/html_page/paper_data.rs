//! The tables and figures of the paper that the group `displacement` redoes, as the page's script reads them.

use serde::Serialize;
use syscost_analysis::render::paper_table::{Sheet, filled_sheets};
use syscost_analysis::study::paper::{Figure, Paper, figures};
use syscost_engine::record::{CurveRecord, Record};

#[derive(Serialize)]
pub(super) struct PaperData {
    tables: Vec<Sheet>,
    figures: Vec<FigureData>,
}

#[derive(Serialize)]
struct FigureData {
    title: &'static str,
    curves: Vec<CurveRecord>,
}

impl PaperData {
    /// Those that have a number of the record; `None` where none has.
    pub(super) fn from_record(record: &Record) -> Option<Self> {
        let paper = Paper::read().ok()?;
        let drawn = |Figure { title, curves, .. }| FigureData { title, curves };
        let tables = filled_sheets(&paper, record);
        let figures = figures(&paper, record).into_iter().map(drawn).collect();
        (!tables.is_empty()).then_some(Self { tables, figures })
    }
}
