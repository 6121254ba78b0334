//! The file of a bundle, `NAME.syscost`: gzip in two members. The first member is one line of JSON, the [`Head`]; the
//! second holds the runs, one [`Record`] per line. `zcat` shows both. Each member has its own checksum, and a comparison
//! inflates and parses only the first.

use super::Head;
use super::check::check_head;
use crate::error::{Error, Result};
use crate::platform::plain_file;
use flate2::Compression;
use flate2::bufread::{GzDecoder, MultiGzDecoder};
use flate2::write::GzEncoder;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use syscost_engine::record::Record;
use syscost_engine::record::store::{LIMIT, Store, check_name, create_file, parse};

/// Runs that belong together, with the head that a comparison needs.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The data that a comparison needs.
    pub head: Head,
    /// The runs, in the order of the head's runs.
    pub records: Vec<Record>,
}

impl Bundle {
    /// A bundle of these runs under this name, in the order in which they began.
    ///
    /// # Errors
    /// There is no run, two runs differ in unit or scale, or a run occurs twice.
    pub fn from_records(name: &str, created: u64, mut records: Vec<Record>) -> Result<Self> {
        records.sort_by_key(|record| record.started);
        check_agreement(name, &records)?;
        Ok(Self { head: Head::from_records(name, created, &records), records })
    }

    /// Saves the bundle in a store, under the name in its head. Returns the path of the file.
    ///
    /// # Errors
    /// A record of this name exists, or the file cannot be written.
    pub fn save_in(&self, store: &Store) -> Result<PathBuf> {
        let path = store.record_path(&self.head.name)?;
        write_new(&path, self).map(|_| path)
    }
}

/// Refuses runs that do not belong together.
fn check_agreement(name: &str, records: &[Record]) -> Result<()> {
    let Some(first) = records.first() else {
        return Err(Error::Usage(format!("there is no run to record under {name}: measure one first")));
    };
    for (at, other) in records.iter().enumerate().skip(1) {
        let differs = |what, ours: &str, theirs: &str| {
            let sentence = format!(
                "runs that are recorded together agree in their {what}: that of {} is {ours}, that of {} is {theirs}; \
                 record them apart",
                first.run, other.run
            );
            if ours == theirs { Ok(()) } else { Err(Error::Usage(sentence)) }
        };
        differs("unit", &first.unit, &other.unit)?;
        differs("scale", &first.scale, &other.scale)?;
        if records[..at].iter().any(|r| (&r.run, &r.boot) == (&other.run, &other.boot)) {
            return Err(Error::Usage(format!("the run {} is there twice; name it once", other.run)));
        }
    }
    Ok(())
}

/// Writes a bundle atomically, and never in place of another file. Returns its size in bytes.
///
/// # Errors
/// A file of this name exists, the file cannot be written, or the runs do not belong together. Also if the file could not
/// be read again, because it is too large or has a number that is not finite.
pub fn write_new(path: &Path, bundle: &Bundle) -> Result<u64> {
    check_agreement(&bundle.head.name, &bundle.records)?;
    let bytes = encode_bundle(path, bundle)?;
    // A file that could not be read again (NaN, for one) is not written.
    read_whole(Source::new(path, &bytes[..]), path)?;
    create_file(path, &bytes)?;
    Ok(bytes.len() as u64)
}

/// Reads only the head of a bundle.
///
/// # Errors
/// The file cannot be read, is no bundle, is damaged, or was written by a newer version.
pub fn read_head(path: &Path) -> Result<Head> {
    let file = plain_file::open(path)?;
    read_matching_head(Source::new(path, &file), &file, path)
}

/// Reads the head and checks that it belongs to the runs of the file, which are not inflated. The head states the end of the
/// runs' gzip member. Another end shows that the runs belong to another head, are cut off or were changed.
fn read_matching_head(mut source: Source<'_, &File>, file: &File, path: &Path) -> Result<Head> {
    let mut head = parse_head(&mut source, path)?;
    // Older files have no such field, and are not checked.
    head.runs_end.take().map_or(Ok(()), |stated| check_runs_end(file, path, stated))?;
    Ok(head)
}

fn check_runs_end(file: &File, path: &Path, stated: u64) -> Result<()> {
    let mut end = [0; END];
    let length = file.metadata().map(|found| found.len());
    // A file shorter than this has no head.
    let read = length.and_then(|length| file.read_exact_at(&mut end, length.saturating_sub(END as u64)));
    read.map_err(|e| Error::file(path, "reading", e))?;
    if u64::from_le_bytes(end) == stated {
        return Ok(());
    }
    Err(content_error(path, "the runs", "those that the head was made of", "others, or not all of them"))
}

/// Bytes at the end of a gzip member: the CRC-32 of the inflated data, and their length (RFC 1952).
const END: usize = 8;

/// Reads a bundle and checks that its head follows from its runs.
///
/// # Errors
/// Those of [`read_head`], or the runs are not those of the head.
pub fn read(path: &Path) -> Result<Bundle> {
    read_whole(open_source(path)?, path)
}

/// Reads the head of a bundle, or makes one of a file with one or more runs as plain JSON, as `cargo bench` and
/// `--save-baseline` leave them.
///
/// # Errors
/// Those of [`read_head`]; for plain JSON also if the runs do not have one unit.
pub fn read_any_head(path: &Path) -> Result<Head> {
    let file = plain_file::open(path)?;
    let mut source = Source::new(path, &file);
    if source.is_gzip()? {
        read_matching_head(source, &file, path)
    } else {
        Ok(read_plain_json(source, path)?.head)
    }
}

/// As [`read_any_head`], with the runs.
///
/// # Errors
/// As [`read_any_head`].
pub fn read_any(path: &Path) -> Result<Bundle> {
    let mut source = open_source(path)?;
    if source.is_gzip()? { read_whole(source, path) } else { read_plain_json(source, path) }
}

fn open_source(path: &Path) -> Result<Source<'_, File>> {
    Ok(Source::new(path, plain_file::open(path)?))
}

fn parse_head<R: Read>(source: &mut Source<'_, R>, path: &Path) -> Result<Head> {
    if !source.is_gzip()? {
        return Err(not_a_record_error(path, "no gzip"));
    }
    let text = source.read_head()?;
    if !text.starts_with(b"{") {
        return Err(not_a_record_error(path, "gzip of something else"));
    }
    let head: Head =
        parse::versioned(path, &text, ("bundle", super::LAYOUT), "the head of a record of syscost")?;
    check_head(path, &head)?;
    Ok(head)
}

fn read_whole<R: Read>(mut source: Source<'_, R>, path: &Path) -> Result<Bundle> {
    let head = parse_head(&mut source, path)?;
    if source.is_at_end()? {
        return Err(content_error(path, "the runs", "a second member with the runs", "the end of the file"));
    }
    let mut records = Vec::new();
    source.for_each_line(|above, line| {
        let record = parse::record_at_line(path, line, above)?;
        // Checked for each run and not after the last, because the head limits the number of runs.
        match head.runs.get(above) {
            Some(run) if run.name == record.run => records.push(record),
            Some(run) => {
                return Err(content_error(
                    path,
                    &format!("run {above}"),
                    &run.name,
                    &format!("{:?}", record.run),
                ));
            }
            None => return Err(content_error(path, "the runs", &head.runs.len().to_string(), "more")),
        }
        Ok(())
    })?;
    let said = Head::from_records(&head.name, head.created, &records);
    match first_difference(&head, &said, &records) {
        Some(part) => Err(content_error(path, part, "what the runs say", "something else")),
        None => Ok(Bundle { head: Head { runs_end: None, ..head }, records }),
    }
}

/// The name of the first field in which the head contradicts its runs; `None` if they agree.
fn first_difference(head: &Head, said: &Head, records: &[Record]) -> Option<&'static str> {
    let agree = |f: fn(&Record) -> &String, with: &String| records.iter().all(|record| f(record) == with);
    [
        ("tool", head.tool == said.tool),
        ("unit", agree(|record| &record.unit, &head.unit)),
        ("scale", agree(|record| &record.scale, &head.scale)),
        ("fingerprints", head.fingerprints == said.fingerprints),
        ("runs", head.runs == said.runs),
        ("series", head.series == said.series),
    ]
    .into_iter()
    .find_map(|(part, agrees)| (!agrees).then_some(part))
}

/// A bundle of runs that were saved as plain JSON. Its name is that of the file, if that is a valid name.
fn read_plain_json<R: Read>(source: Source<'_, R>, path: &Path) -> Result<Bundle> {
    let records = parse::records(path, &source.read_uncompressed()?)?;
    let created = records.iter().map(|record| record.started).max().unwrap_or_default();
    let stem =
        path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| check_name(stem, "record").is_ok());
    let name = stem.or_else(|| records.first().map(|record| record.run.as_str())).unwrap_or_default();
    let head = Head::from_records(name, created, &records);
    check_head(path, &head)?;
    if let Some(other) = records.iter().find(|record| record.unit != head.unit) {
        return Err(content_error(path, "unit", &format!("{} as in the first run", head.unit), &other.unit));
    }
    Ok(Bundle { head, records })
}

fn encode_bundle(path: &Path, bundle: &Bundle) -> Result<Vec<u8>> {
    let runs = gzip_member(path, &bundle.records)?;
    let runs_end = runs.last_chunk::<END>().copied().map(u64::from_le_bytes);
    let head = Head { runs_end, ..bundle.head.clone() };
    let mut bytes = gzip_member(path, &[head])?;
    bytes.extend(runs);
    Ok(bytes)
}

/// A gzip member with one line of JSON for each value.
fn gzip_member<T: Serialize>(path: &Path, lines: &[T]) -> Result<Vec<u8>> {
    let failed = |e| Error::file(path, "writing as JSON", e);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    for line in lines {
        let mut line = serde_json::to_vec(line).map_err(|e| failed(e.into()))?;
        line.push(b'\n');
        encoder.write_all(&line).map_err(failed)?;
    }
    encoder.finish().map_err(failed)
}

fn not_a_record_error(path: &Path, found: &str) -> Error {
    content_error(path, "the first bytes", "a record of syscost", found)
}

fn content_error(path: &Path, field: &str, expected: &str, found: &str) -> Error {
    let remedy =
        "it is no record of syscost, or was damaged or edited: name another file, or take another copy of it";
    Error::invalid_content(path, field, expected, found, remedy)
}

// Reading gzip within limits. A few kilobytes can inflate to any length, and a device may be endless, so every read has a
// limit.

/// The largest inflated size of a head, in bytes. A hundred processes over a thousand cases need a tenth of it.
const HEAD_LIMIT: u64 = 64 << 20;
/// The largest inflated size of all runs together, in bytes.
const RUNS_LIMIT: u64 = 2 << 30;

/// A file that is read member by member.
pub struct Source<'p, R> {
    path: &'p Path,
    reader: BufReader<Take<R>>,
}

impl<'p, R: Read> Source<'p, R> {
    /// Reads from `from`; the path is for messages.
    pub fn new(path: &'p Path, from: R) -> Self {
        // One byte more than the limit, to notice a larger file.
        Self { path, reader: BufReader::new(from.take(LIMIT + 1)) }
    }

    /// Whether a gzip member begins at the current position. The test is its first byte, with which no JSON begins.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_gzip(&mut self) -> Result<bool> {
        let next = self.reader.fill_buf();
        next.map(|bytes| bytes.first() == Some(&0x1f)).map_err(|e| Error::file(self.path, "reading", e))
    }

    /// Whether the file ends at the current position.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_at_end(&mut self) -> Result<bool> {
        let next = self.reader.fill_buf();
        next.map(<[u8]>::is_empty).map_err(|e| Error::file(self.path, "reading", e))
    }

    /// The bytes of the whole file, which must not be gzip.
    ///
    /// # Errors
    /// The file cannot be read, or is above the limit.
    pub fn read_uncompressed(mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.reader.read_to_end(&mut bytes);
        read.map_err(|e| Error::file(self.path, "reading", e))?;
        if bytes.len() as u64 > LIMIT { Err(self.too_large_error("size", LIMIT)) } else { Ok(bytes) }
    }

    /// The first member, inflated.
    ///
    /// # Errors
    /// The member cannot be read, is damaged, or is above the limit.
    pub fn read_head(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = GzDecoder::new(&mut self.reader).take(HEAD_LIMIT + 1).read_to_end(&mut bytes);
        read.map_err(|cause| self.read_error("the head", cause))?;
        if bytes.len() as u64 > HEAD_LIMIT {
            Err(self.too_large_error("the head", HEAD_LIMIT))
        } else {
            Ok(bytes)
        }
    }

    /// Calls `each` for every inflated line of the remaining members, with the number of lines before it.
    ///
    /// # Errors
    /// A member cannot be read, is damaged or above a limit; or `each` fails.
    pub fn for_each_line(mut self, mut each: impl FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        let mut inflated = BufReader::new(MultiGzDecoder::new(&mut self.reader).take(RUNS_LIMIT + 1));
        let (mut line, mut above) = (Vec::new(), 0);
        let ended = loop {
            line.clear();
            match inflated.by_ref().take(LIMIT + 1).read_until(b'\n', &mut line) {
                Ok(0) => break Ok(()),
                Ok(length) if length as u64 > LIMIT => return Err(self.too_large_error("a run", LIMIT)),
                Ok(_) => each(above, &line)?,
                Err(cause) => break Err(cause),
            }
            above += 1;
        };
        let is_over = inflated.get_ref().limit() == 0;
        ended.map_err(|cause| self.read_error("the runs", cause))?;
        if is_over { Err(self.too_large_error("the runs", RUNS_LIMIT)) } else { Ok(()) }
    }

    /// The error of a read. A cause with an error number comes from the kernel, any other from gzip.
    fn read_error(&self, part: &str, cause: io::Error) -> Error {
        if cause.raw_os_error().is_some() {
            return Error::file(self.path, "reading", cause);
        }
        if self.reader.get_ref().limit() == 0 {
            return self.too_large_error("size", LIMIT);
        }
        let remedy = "the file is cut off or damaged: take another copy of it";
        Error::invalid_content(self.path, part, "whole gzip data", cause.to_string(), remedy)
    }

    fn too_large_error(&self, part: &str, limit: u64) -> Error {
        let expected = format!("at most {} MiB", limit >> 20);
        Error::invalid_content(
            self.path,
            part,
            expected,
            "more",
            "this is no file of ours: name another one, or delete it",
        )
    }
}

#[cfg(test)]
mod tests;
