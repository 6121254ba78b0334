//! What the kernel has charged to this process for devices, and what has come in by the network: the two witnesses
//! of a read that is said to have passed the page cache by.

use crate::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Where it is told.
const OWN: &str = "/proc/self/io";
const NETWORK: &str = "/proc/self/net/dev";

/// Bytes that were moved to and from devices on behalf of this process, by proc_pid_io(5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Read from devices.
    pub read: u64,
    /// Written to devices, or to pages that are yet to be.
    pub written: u64,
}

/// What tells that bytes came from where they should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A device: all threads of this process, and the children that it has waited for.
    Device,
    /// The network: all interfaces, and whoever else uses them.
    Network,
}

/// An open account: a reading opens nothing, and allocates nothing but where the text has grown.
pub struct Account {
    file: File,
    source: Source,
    buffer: Vec<u8>,
}

impl Account {
    /// Opens it.
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel keeps none.
    pub fn open(source: Source) -> Result<Self> {
        let path = if source == Source::Device { OWN } else { NETWORK };
        let file = File::open(path).map_err(|cause| {
            Error::Missing(format!(
                "{path}: {cause}; without it nobody can tell where bytes came from: mount /proc, and build the kernel \
                 with CONFIG_TASK_IO_ACCOUNTING"
            ))
        })?;
        Ok(Self { file, source, buffer: vec![0; 16 << 10] })
    }

    /// What it says now.
    pub fn read(&mut self) -> Result<Moved> {
        let path = if self.source == Source::Device { OWN } else { NETWORK };
        let length = self.whole().map_err(|e| Error::file(path, "reading", e))?;
        let text = std::str::from_utf8(&self.buffer[..length]).unwrap_or_default();
        let moved = if self.source == Source::Device { charged(text) } else { carried(text) };
        moved.ok_or_else(|| Error::Content {
            path: path.into(),
            field: "bytes".into(),
            expected: "counts of bytes".into(),
            found: text.lines().next().unwrap_or_default().into(),
            remedy: "this kernel writes it in another form".into(),
        })
    }
}

impl Account {
    /// Reads all of the text, which the kernel gives out in pieces of a page: that of forty interfaces has two.
    fn whole(&mut self) -> std::io::Result<usize> {
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                self.buffer.resize(2 * length, 0);
            }
            match self.file.read_at(&mut self.buffer[length..], length as u64)? {
                0 => return Ok(length),
                more => length += more,
            }
        }
    }
}

/// The text of `/proc/PID/io`.
fn charged(text: &str) -> Option<Moved> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.strip_prefix(": ")?.trim().parse().ok()
    };
    Some(Moved { read: field("read_bytes")?, written: field("write_bytes")? })
}

/// The text of `/proc/net/dev`: two lines of heads, then an interface a line, bytes received in the first column
/// and bytes sent in the ninth.
fn carried(text: &str) -> Option<Moved> {
    let interface = |line: &str| {
        let mut columns = line.rsplit_once(':')?.1.split_ascii_whitespace().map(|n| n.parse().ok());
        let read: u64 = columns.next()??;
        Some(Moved { read, written: columns.nth(7)?? })
    };
    let sum = |a: Moved, b: Moved| Moved { read: a.read + b.read, written: a.written + b.written };
    text.lines().skip(2).map(interface).try_fold(Moved::default(), |all, one| Some(sum(all, one?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_texts_are_understood() {
        let io = "rchar: 6976\nwchar: 0\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 8192\n\
                  cancelled_write_bytes: 0\n";
        assert_eq!(charged(io), Some(Moved { read: 4096, written: 8192 }));
        assert_eq!(charged("rchar: 1\n"), None);
        let dev = "Inter-|   Receive\n face |bytes\n    lo: 100 2 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n  eth0:7 1 0 0 0 0 0 0 9 1 0 0 0 \
                   0 0 0\n";
        assert_eq!(carried(dev), Some(Moved { read: 107, written: 209 }));
        assert_eq!(carried("a\nb\n"), Some(Moved::default()), "a network without interfaces");
        assert_eq!(carried("a\nb\nlo: x\n"), None);
    }

    #[test]
    fn a_text_of_several_pages_is_read_whole() {
        let long = ["/proc/kallsyms", "/proc/crypto", "/proc/self/net/protocols"];
        let texts = long.into_iter().filter_map(|path| Some((path, std::fs::read(path).ok()?)));
        let Some((path, text)) = texts.into_iter().find(|(_, text)| text.len() > 16 << 10) else {
            println!("skipped: the kernel shows no long text that stays as it is");
            return;
        };
        let file = File::open(path).expect("a file");
        let mut account = Account { file, source: Source::Network, buffer: vec![0; 16 << 10] };
        let length = account.whole().expect("read");
        assert!(account.buffer[..length] == text, "{length} of {} bytes", text.len());
    }

    #[test]
    fn what_memory_holds_is_charged_to_no_device() {
        let mut account = Account::open(Source::Device).expect("an account");
        let before = account.read().expect("told");
        std::fs::read("/proc/self/status").expect("read");
        assert_eq!(account.read().expect("told").read, before.read);
    }
}
