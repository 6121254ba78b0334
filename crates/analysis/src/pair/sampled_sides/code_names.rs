//! The names of sampled functions: the kernel's from `/proc/kallsyms`, those of programs from the symbols of their files.

use crate::platform::kernel_files::KernelFiles;
use crate::platform::proc::own_code_mappings;
use crate::platform::symbols::{SymbolLine, Symbols, fold_family};
use object::{Object, ObjectSegment, ObjectSymbol, ReadCache, ReadRef, SymbolKind};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use syscost_engine::trial::CodeAddress;

/// The common name of all kernel code if the kernel's symbols are hidden.
pub const KERNEL: &str = "(the kernel)";
/// The name of kernel code that has no symbol.
const GENERATED: &str = "(generated code, such as a filter of system calls)";
/// The name of program code that is in no file.
const IN_NO_FILE: &str = "(code in no file)";
/// The name of the mapping with the kernel's code for reading clocks.
const VDSO: &str = "[vdso]";

/// Looks up the names of functions. Each file is read once.
pub struct CodeNames {
    kernel: Option<KernelSymbols>,
    files: HashMap<String, Option<FileSymbols>>,
}

/// Whether an address belongs to the kernel, on every 64-bit processor.
pub fn is_kernel(address: u64) -> bool {
    address >> 63 == 1
}

impl CodeNames {
    /// The names of the running kernel. The names of files are read when they are needed.
    pub fn new() -> Self {
        let text = KernelFiles::live().read_text("proc/kallsyms").unwrap_or_default();
        let modules = KernelFiles::live().read_text("proc/modules").unwrap_or_default();
        Self { kernel: KernelSymbols::parse(&text, &modules), files: HashMap::new() }
    }

    /// A sentence if the names of the kernel's functions are hidden.
    pub fn kernel_note(&self) -> Option<String> {
        self.kernel.is_none().then(|| {
            "the kernel is one row, since its symbols are hidden: `sysctl kernel.kptr_restrict=0` and root show /proc/kallsyms"
                .into()
        })
    }

    /// Forgets the files outside `/usr/`, so that they are read again: their paths may now lead to other links of a build.
    pub fn forget_files(&mut self) {
        self.files.retain(|file, _| !file.starts_with('/') || file.starts_with("/usr/"));
    }

    /// The name of the function at an address. `program` is the path of the program's own file.
    pub fn name(&mut self, code: &CodeAddress, program: &str) -> String {
        match &code.file {
            None if is_kernel(code.address) => match &self.kernel {
                Some(symbols) => symbols.name(code.address),
                None => KERNEL.into(),
            },
            None => IN_NO_FILE.into(),
            Some(file) => {
                let symbols = self.files.entry(file.clone()).or_insert_with(|| FileSymbols::read(file));
                let name = symbols.as_ref().and_then(|symbols| symbols.name(code.address));
                let place = file.rsplit('/').next().unwrap_or(file);
                match (name, file == program) {
                    (Some(name), true) => name,
                    (Some(name), false) => format!("{name} ({place})"),
                    (None, _) => format!("(in {place})"),
                }
            }
        }
    }
}

struct KernelSymbols {
    symbols: Symbols,
    /// End address of the kernel's own code.
    end: u64,
    /// Begin and end address of each module.
    modules: Vec<(u64, u64)>,
}

impl KernelSymbols {
    /// Parses the kernel's symbols; `None` if the kernel hides the addresses.
    fn parse(text: &str, modules: &str) -> Option<Self> {
        let mut functions = Vec::new();
        let mut end = u64::MAX;
        for line in text.lines().filter_map(SymbolLine::parse) {
            let address = u64::from_str_radix(line.address, 16).unwrap_or(0);
            if line.name == "_etext" {
                end = address;
            } else if line.is_function && address != 0 {
                functions.push((address, line.name.to_owned()));
            }
        }
        let symbols = Symbols::new(functions);
        let modules = modules.lines().filter_map(module_range).collect();
        (!symbols.is_empty()).then_some(Self { symbols, end, modules })
    }

    fn name(&self, address: u64) -> String {
        let name = self.symbols.start(address).map(|start| self.symbols.family(Some(start), &HashSet::new()));
        let is_inside = address < self.end
            || self.modules.iter().any(|(begin, end)| (*begin..*end).contains(&address))
            || name.is_some_and(|name| name.starts_with("bpf_"));
        name.filter(|_| is_inside).unwrap_or(GENERATED).to_owned()
    }
}

/// The address range of a module, from a line of `/proc/modules`: name, size, users, their names, state, address.
fn module_range(line: &str) -> Option<(u64, u64)> {
    let words: Vec<_> = line.split_ascii_whitespace().collect();
    let begin = u64::from_str_radix(words.get(5)?.trim_start_matches("0x"), 16).ok()?;
    Some((begin, begin + words.get(1)?.parse::<u64>().ok()?))
}

/// The functions of a file.
struct FileSymbols {
    /// Address, length and mangled name of each function, sorted by address.
    functions: Vec<(u64, u64, String)>,
    /// File offset, length and address of each segment.
    segments: Vec<(u64, u64, u64)>,
}

impl FileSymbols {
    /// Reads the functions of a file; `None` if it cannot be read or has no symbols.
    fn read(file: &str) -> Option<Self> {
        if file == VDSO {
            return Self::parse(&*mapped_vdso()?);
        }
        let opened =
            File::open(file).ok().filter(|opened| opened.metadata().is_ok_and(|data| data.is_file()))?;
        Self::parse(&ReadCache::new(opened))
    }

    fn parse<'data>(data: impl ReadRef<'data>) -> Option<Self> {
        let parsed = object::File::parse(data).ok()?;
        let symbols = parsed.symbols().chain(parsed.dynamic_symbols());
        let code = symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
        let mut functions: Vec<_> = code
            .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned())))
            .collect();
        functions.sort();
        functions.dedup_by_key(|(address, ..)| *address);
        let segments = parsed.segments().map(|segment| {
            let (offset, length) = segment.file_range();
            (offset, length, segment.address())
        });
        Some(Self { functions, segments: segments.collect() })
    }

    /// The demangled name of the function at this offset of the file.
    fn name(&self, place: u64) -> Option<String> {
        let (offset, _, begin) =
            self.segments.iter().find(|(offset, length, _)| (*offset..offset + length).contains(&place))?;
        let address = place - offset + begin;
        let behind = self.functions.partition_point(|(begin, ..)| *begin <= address);
        let (begin, length, name) = self.functions[..behind].last()?;
        (address - begin < *length).then(|| format!("{:#}", rustc_demangle::demangle(fold_family(name))))
    }
}

/// The bytes of this process's vDSO. All processes of a kernel have the same vDSO.
fn mapped_vdso() -> Option<Vec<u8>> {
    let mappings = own_code_mappings().ok()?;
    let vdso = mappings.iter().find(|mapping| mapping.file == VDSO)?;
    let mut bytes = vec![0; usize::try_from(vdso.end.checked_sub(vdso.begin)?).ok()?];
    let mut memory = File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(vdso.begin)).and_then(|_| memory.read_exact(&mut bytes)).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "ffffffff81000000 T _stext\nffffffff81000100 T do_syscall_64\n\
        ffffffff81000200 t vfs_read.part.0\nffffffff81000300 D data\nffffffff81001000 T _etext\n\
        ffffffffc0000000 t helper\t[module]\nffffffffc0009000 t bpf_prog_1_x\t[bpf]\n";

    #[test]
    fn kernel_code_has_its_symbol_or_counts_as_generated() {
        let symbols =
            KernelSymbols::parse(KALLSYMS, "module 4096 0 - Live 0xffffffffc0000000\n").expect("symbols");
        for (address, name) in [
            (0xffff_ffff_8100_0110, "do_syscall_64"),
            (0xffff_ffff_8100_0210, "vfs_read"),
            (0xffff_ffff_8100_2000, GENERATED),
            (0xffff_ffff_c000_0010, "helper"),
            (0xffff_ffff_c000_2000, GENERATED),
            (0xffff_ffff_c000_9010, "bpf_prog_1_x"),
        ] {
            assert_eq!(symbols.name(address), name, "{address:x}");
        }
    }

    #[test]
    fn hidden_addresses_make_the_kernel_one_row() {
        assert!(KernelSymbols::parse("0000000000000000 T do_syscall_64\n", "").is_none());
        let mut names = CodeNames { kernel: None, files: HashMap::new() };
        let kernel = CodeAddress { address: 0xffff_ffff_8100_0110, file: None };
        assert_eq!(names.name(&kernel, ""), KERNEL);
        assert!(names.kernel_note().expect("said").contains("kptr_restrict"));
    }

    #[test]
    fn a_function_of_this_program_and_of_the_vdso_have_their_names() {
        let program = std::env::current_exe().expect("a path").display().to_string();
        let symbols = FileSymbols::read(&program).expect("symbols");
        // The closures of a function are functions of their own, and the compiler chooses their places.
        let is_wanted =
            |name: &str| format!("{:#}", rustc_demangle::demangle(name)).ends_with("code_names::mapped_vdso");
        let address = symbols.functions.iter().find(|(.., name)| is_wanted(name)).expect("this file").0;
        let (offset, _, begin) = *symbols
            .segments
            .iter()
            .find(|(_, length, begin)| (*begin..begin + length).contains(&address))
            .expect("a segment");
        let code = CodeAddress { address: address - begin + offset, file: Some(program.clone()) };
        let mut names = CodeNames { kernel: None, files: HashMap::new() };
        let name = names.name(&code, &program);
        assert!(name.ends_with("code_names::mapped_vdso"), "{name}");
        assert!(
            names.name(&code, "").contains("code_names::mapped_vdso ("),
            "another program's has its file"
        );
        let nowhere = CodeAddress { address: 1, file: Some("/nowhere/x.so".into()) };
        assert_eq!(names.name(&nowhere, &program), "(in x.so)");
        #[cfg(target_arch = "x86_64")]
        assert!(FileSymbols::read(VDSO).is_some_and(|vdso| !vdso.functions.is_empty()));
    }
}
