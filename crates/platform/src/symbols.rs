//! The functions of a kernel by their addresses, and the names by which two kernels are compared.

use std::collections::HashSet;

/// The name of all code outside the kernel.
pub const PROGRAM: &str = "(the program)";
/// The name of code in the kernel that no symbol names.
const UNNAMED: &str = "(no symbol)";
/// The greatest plausible length of a function, bytes: code farther behind a symbol belongs to none.
const LONGEST: u64 = 1 << 20;
/// Parts that compilers add to the name of a function when they split or specialise it.
const SPECIALISED: [&str; 6] = ["isra", "constprop", "part", "cold", "llvm", "lto_priv"];
/// The beginning of the name of the padding before a function.
const PADDING: &str = "__pfx_";

/// A line of `/proc/kallsyms`.
pub struct SymbolLine<'a> {
    /// The address in hexadecimal digits, all 0 where the kernel hides the addresses.
    pub address: &'a str,
    /// The name of the symbol.
    pub name: &'a str,
    /// The module, in brackets, that the symbol belongs to, if any.
    pub module: Option<&'a str>,
    /// Whether the symbol is a function.
    pub is_function: bool,
}

impl<'a> SymbolLine<'a> {
    /// Parses a line; `None` if it is damaged.
    pub fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
        let is_function = matches!(kind, "t" | "T" | "w" | "W");
        Some(Self { address, name, module: words.next(), is_function })
    }
}

/// The functions of one kernel. Several names may have one address.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// Sorted by address.
    functions: Vec<(u64, String)>,
}

impl Symbols {
    /// Makes the table from addresses and names in any order.
    pub fn new(mut functions: Vec<(u64, String)>) -> Self {
        functions.sort();
        functions.dedup();
        Self { functions }
    }

    /// Whether there is no function.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The start of the function that contains this address; `None` outside the kernel, and if no symbol is near.
    pub fn start(&self, address: u64) -> Option<u64> {
        let behind = self.functions.partition_point(|(start, _)| *start <= address);
        let start = self.functions[..behind].last()?.0;
        (address - start < LONGEST).then_some(start)
    }

    /// The folded name of the function that begins at `start`. If it has several names, one that is in `shared` is preferred.
    pub fn family(&self, start: Option<u64>, shared: &HashSet<&str>) -> &str {
        let Some(start) = start else { return UNNAMED };
        let first = self.functions.partition_point(|(other, _)| *other < start);
        let names = self.functions[first..].iter().take_while(|(other, _)| *other == start);
        names
            .map(|(_, name)| name.as_str())
            .min_by_key(|name| rank(name, shared))
            .map_or(UNNAMED, fold_family)
    }

    /// Whether a function begins at this address, and not the padding before one.
    pub fn is_entry(&self, address: u64) -> bool {
        let first = self.functions.partition_point(|(start, _)| *start < address);
        let mut names = self.functions[first..].iter().take_while(|(start, _)| *start == address).peekable();
        names.peek().is_some() && names.all(|(_, name)| !name.starts_with(PADDING))
    }

    /// The address at which the function of this name begins.
    pub fn address(&self, name: &str) -> Option<u64> {
        self.functions.iter().find(|(_, other)| other == name).map(|(address, _)| *address)
    }

    /// The folded names of all functions.
    pub fn families(&self) -> HashSet<&str> {
        self.functions.iter().map(|(_, name)| fold_family(name)).collect()
    }
}

/// The key that orders several names of one function: the name with the lowest key is taken.
fn rank<'a>(name: &'a str, shared: &HashSet<&str>) -> (bool, bool, bool, usize, &'a str) {
    let is_entry = name.starts_with("__ia32_") || name.starts_with("__do_sys");
    // The borders of sections are symbols, too.
    let is_border = ["_start", "_end", "_begin", "_stext", "_etext"].iter().any(|end| name.ends_with(end));
    let is_worse = name.starts_with(PADDING) || is_border;
    (is_worse, !shared.contains(fold_family(name)), is_entry, name.len(), name)
}

/// The name of a function as its source has it: without what compilers add to the parts and copies of a function.
pub fn fold_family(name: &str) -> &str {
    let name = name.strip_prefix(PADDING).unwrap_or(name);
    let Some((family, rest)) = name.split_once('.') else { return name };
    let is_added = |part: &str| SPECIALISED.contains(&part) || part.bytes().all(|byte| byte.is_ascii_digit());
    if !family.is_empty() && rest.split('.').all(is_added) { family } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols() -> Symbols {
        let functions = [
            (0x1000, "__pfx_ksys_read"),
            (0x1010, "ksys_read"),
            (0x1100, "__ia32_sys_getppid"),
            (0x1100, "__x64_sys_getppid"),
            (0x1200, "vfs_read.part.0"),
            (0x1300, "__irqentry_text_end"),
            (0x1300, "error_entry_of_some_kind"),
        ];
        Symbols::new(functions.map(|(address, name)| (address, name.to_owned())).to_vec())
    }

    #[test]
    fn parts_and_copies_of_a_function_have_its_name() {
        for (name, family) in [
            ("copy_process", "copy_process"),
            ("__pfx_vfs_read", "vfs_read"),
            ("do_anonymous_page.isra.0", "do_anonymous_page"),
            ("f.constprop.0.isra.0", "f"),
            ("f.part.0.cold", "f"),
            ("f.llvm.123456789", "f"),
            (".text", ".text"),
            ("f.other", "f.other"),
        ] {
            assert_eq!(fold_family(name), family);
        }
    }

    #[test]
    fn an_address_belongs_to_the_function_before_it() {
        let symbols = symbols();
        assert_eq!(symbols.start(0x1050), Some(0x1010));
        assert_eq!(symbols.start(0x10), None);
        assert_eq!(symbols.start(0x1300 + LONGEST), None);
        assert!(symbols.is_entry(0x1010) && !symbols.is_entry(0x1000) && !symbols.is_entry(0x1011));
    }

    #[test]
    fn of_several_names_one_that_both_kernels_have_is_preferred() {
        let symbols = symbols();
        assert_eq!(symbols.family(Some(0x1100), &HashSet::new()), "__x64_sys_getppid");
        assert_eq!(
            symbols.family(Some(0x1100), &HashSet::from(["__ia32_sys_getppid"])),
            "__ia32_sys_getppid"
        );
        assert_eq!(symbols.family(Some(0x1200), &HashSet::new()), "vfs_read");
        assert_eq!(symbols.family(Some(0x1300), &HashSet::new()), "error_entry_of_some_kind");
        assert_eq!(symbols.family(None, &HashSet::new()), UNNAMED);
    }
}
