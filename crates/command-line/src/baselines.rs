//! The comparison of stored baselines that `syscost compare`, `gate` and `draw` share.

use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::page;
use std::ffi::OsString;
use syscost_analysis::record::bundle::{Head, read_any_head};
use syscost_analysis::study::comparison::{Comparison, Options, compare, wants_history};
use syscost_engine::record::Verdict;

/// The heads of the baselines of these names; an error for fewer than two.
pub fn baseline_heads(archive: &Archive, baselines: &[OsString]) -> Result<Vec<Head>> {
    if baselines.len() < 2 {
        return Err(Error::Usage(
            "one baseline alone cannot be compared; name two or more, the oldest first, or the kernels of one `--by kernel`"
                .into(),
        ));
    }
    baselines.iter().map(|name| archive.load_head(name)).collect()
}

/// All rows of these baselines, each against the first.
pub fn compare_all_rows(archive: &Archive, heads: &[Head], threshold: Option<f64>) -> Result<Comparison> {
    let history = if wants_history(heads) { load_history(archive)? } else { Vec::new() };
    let comparison = compare(heads, &history, Options { threshold: threshold.unwrap_or_default() });
    refuse_incomparable(&comparison)?;
    Ok(comparison)
}

/// All rows of these baselines with the least threshold, ordered by verdict and then by size of the change.
///
/// # Errors
/// A baseline does not exist or cannot be read, or none of their cases can be compared.
pub fn compare_baselines(archive: &Archive, baselines: &[OsString]) -> Result<Comparison> {
    let mut comparison = compare_all_rows(archive, &baseline_heads(archive, baselines)?, None)?;
    comparison.sort_by_weight();
    Ok(comparison)
}

/// The heads of all records, baselines and runs in the archive. Warns of files that cannot be read.
///
/// # Errors
/// A directory of the store cannot be listed.
pub fn load_history(archive: &Archive) -> Result<Vec<Head>> {
    let files = archive.all_files()?;
    let count = files.len();
    let heads: Vec<Head> = files.iter().filter_map(|file| read_any_head(file).ok()).collect();
    if heads.len() < count {
        let damaged = count - heads.len();
        page::warn(&format!("{damaged} of {count} stored files cannot be read and are left aside"));
    }
    Ok(heads)
}

/// Refuses a comparison in which no case of any baseline can be compared.
fn refuse_incomparable(comparison: &Comparison) -> Result<()> {
    if comparison.changes().any(|change| change.verdict != Verdict::Incomparable) {
        return Ok(());
    }
    let mut reasons: Vec<_> = comparison.changes().filter_map(|change| change.reason.as_deref()).collect();
    reasons.dedup();
    let reason = reasons.first().copied().unwrap_or("there are no cases");
    let more = match reasons.len() {
        0 | 1 => String::new(),
        n => format!(" (and {} reasons more)", n - 1),
    };
    Err(Error::Usage(format!("nothing of these baselines can be compared: {reason}{more}")))
}
