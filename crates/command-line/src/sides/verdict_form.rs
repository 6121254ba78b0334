//! The format of the verdicts of a comparison by pairs, and their output.

use crate::error::Result;
use crate::flag::{Format, Only};
use crate::page;
use syscost_analysis::record::paired::Paired;
use syscost_analysis::render::paired_table::{PairedTable, RowChoice, comparison_json, rows_csv};
use syscost_analysis::study::sequential::Row;
use syscost_engine::render::table::Layout;

/// Format of the verdicts.
#[derive(clap::Args)]
pub struct Form {
    /// How to write the verdicts
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Which rows
    #[arg(long, value_enum)]
    only: Option<Only>,
}

impl Form {
    /// A form that another command's flags ask for.
    pub fn new(format: Format, only: Option<Only>) -> Self {
        Self { format, only }
    }

    /// How to write the verdicts.
    pub fn format(&self) -> Format {
        self.format
    }

    fn row_choice(&self) -> RowChoice {
        match self.only {
            None => RowChoice::Usual,
            Some(Only::Changed) => RowChoice::Changed,
            Some(Only::All) => RowChoice::All,
        }
    }
}

/// Writes the rows to the standard output.
///
/// # Errors
/// The output cannot be written.
pub fn write(paired: &Paired, rows: &[Row], form: &Form, layout: Layout) -> Result<()> {
    let choice = form.row_choice();
    page::write(&match form.format {
        Format::Terminal => PairedTable::new(paired, rows, choice).render_terminal(layout),
        Format::Markdown => PairedTable::new(paired, rows, choice).render_markdown(),
        Format::Json => return page::write_json(&comparison_json(paired, rows, choice)),
        Format::Csv => rows_csv(paired.clock_kind(), rows, choice)?,
    })
}
