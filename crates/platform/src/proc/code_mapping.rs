//! Where the code of this process lies, and in which file: the executable lines of `/proc/self/maps` (proc_pid_maps(5)).

/// A mapping of code that has a name.
pub struct CodeMapping {
    /// The address of its first byte.
    pub begin: u64,
    /// The address behind its last byte.
    pub end: u64,
    /// Where it begins in its file.
    pub offset: u64,
    /// The path, or a name in brackets such as `[vdso]`.
    pub file: String,
}

impl CodeMapping {
    /// A line of `/proc/PID/maps`; `None` for memory that is not executable or has no name.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (range, mode, offset) = (words.next()?, words.next()?, words.next()?);
        let file = words.nth(2)?.trim_start();
        let hexadecimal = |digits| u64::from_str_radix(digits, 16).ok();
        let (begin, end) = range.split_once('-')?;
        (mode.contains('x') && !file.is_empty()).then_some(Self {
            begin: hexadecimal(begin)?,
            end: hexadecimal(end)?,
            offset: hexadecimal(offset)?,
            file: file.to_owned(),
        })
    }

    /// The place in the file of what is mapped at this address, if it is mapped here.
    pub fn place_in_file(&self, address: u64) -> Option<u64> {
        (self.begin..self.end).contains(&address).then(|| address - self.begin + self.offset)
    }
}

/// The mappings of code of this process.
///
/// # Errors
/// `/proc` is not mounted, or hidden.
pub fn own_code_mappings() -> std::io::Result<Vec<CodeMapping>> {
    let text = std::fs::read_to_string("/proc/self/maps")?;
    Ok(text.lines().filter_map(CodeMapping::parse).collect())
}
