//! Reading gzip within bounds. A few kilobytes can inflate to any length, and a device may have no end, so every
//! read has a limit.

use crate::error::{Error, Result};
use flate2::bufread::{GzDecoder, MultiGzDecoder};
use std::io::{self, BufRead, BufReader, Read, Take};
use std::path::Path;
use syscost_engine::record::store::LIMIT;

/// The largest head, inflated, in bytes. A hundred processes over a thousand cases need a tenth of it.
const HEAD_LIMIT: u64 = 64 << 20;
/// The largest sum of runs, inflated, in bytes.
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

    /// Whether a gzip member begins here: no JSON begins with that byte.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn is_gzip(&mut self) -> Result<bool> {
        let next = self.reader.fill_buf();
        next.map(|bytes| bytes.first() == Some(&0x1f)).map_err(|e| Error::file(self.path, "reading", e))
    }

    /// Whether the file ends here.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn is_at_end(&mut self) -> Result<bool> {
        let next = self.reader.fill_buf();
        next.map(<[u8]>::is_empty).map_err(|e| Error::file(self.path, "reading", e))
    }

    /// The whole file, for one that is not gzip.
    ///
    /// # Errors
    /// It cannot be read, or is above the limit.
    pub fn read_uncompressed(mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.reader.read_to_end(&mut bytes);
        read.map_err(|e| Error::file(self.path, "reading", e))?;
        if bytes.len() as u64 > LIMIT { Err(self.too_large_error("size", LIMIT)) } else { Ok(bytes) }
    }

    /// The first member, inflated.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or is above the limit.
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

    /// Calls `each` with every line of the remaining members, inflated, and the number of lines before it.
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

    /// An error with a number comes from the kernel, any other from gzip.
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
