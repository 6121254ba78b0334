//! The items of the crate as syntax, and which of them another one can reach by name.
//!
//! Reaching is over-estimated on purpose: a type is reached with all of its methods, and a name in the body of a macro
//! counts as a use. What is reached at run time is therefore always among what is reached here.

use crate::house::House;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use syn::{Attribute, Item, UseTree};

/// Names from the crate's root to a module or an item.
pub type Path = Vec<String>;

/// One module: what it defines, and what its `use` declarations bring in.
#[derive(Default)]
pub struct Module {
    items: Vec<Definition>,
    /// The name here, and where it leads. The name of a glob is `*`.
    uses: Vec<(String, Path)>,
    /// The items themselves.
    pub syntax: Vec<Item>,
}

/// A name and its item.
struct Definition {
    name: String,
    /// Its code without documentation.
    text: String,
    /// What it names.
    uses: Vec<Path>,
}

/// The shipped code of a crate by module.
pub struct Crate(pub BTreeMap<Path, Module>);

/// An item that can be reached: its module, its name, and its place among those of one name.
type Reached = BTreeSet<(Path, usize)>;

impl Crate {
    /// Parses what is compiled for a user, for whatever architecture.
    pub fn parse(house: &House) -> Self {
        let mut modules = BTreeMap::new();
        for (path, _) in house.shipped() {
            let file = syn::parse_file(house.text(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
            collect(module_of(path), file.items, &mut modules);
        }
        Self(modules)
    }

    /// The code that can be reached from the module `root` and those below it, in a fixed order, without comments. Only
    /// items of modules below one of `rooms` are followed.
    pub fn reached(&self, root: &Path, rooms: &[&str]) -> String {
        let mut reached = Reached::new();
        let mut open: Vec<(Path, usize)> = Vec::new();
        for (path, module) in self.0.iter().filter(|(path, _)| path.starts_with(root)) {
            open.extend((0..module.items.len()).map(|at| (path.clone(), at)));
        }
        while let Some((path, at)) = open.pop() {
            if reached.insert((path.clone(), at)) {
                let names = self.0[&path].items[at].uses.iter();
                open.extend(names.flat_map(|name| self.resolve(&path, name, rooms, 0)));
            }
        }
        // Sorted, so that an item may move to another place or file.
        let texts: BTreeSet<&str> = reached.iter().map(|(path, at)| &*self.0[path].items[*at].text).collect();
        texts.into_iter().flat_map(|text| [text, "\n"]).collect()
    }

    /// The items that a path can mean in a module.
    fn resolve(&self, here: &Path, name: &[String], rooms: &[&str], depth: usize) -> Vec<(Path, usize)> {
        const DEEP: usize = 8; // re-exports of re-exports
        let Some((first, rest)) = name.split_first().filter(|_| depth < DEEP) else { return Vec::new() };
        let further = |at: &Path, rest: &[String]| match rest.is_empty() {
            true => Vec::new(),
            false => self.resolve(at, rest, rooms, depth + 1),
        };
        match first.as_str() {
            "crate" => return further(&Path::new(), rest),
            "self" => return further(here, rest),
            "super" => return further(&here[..here.len().saturating_sub(1)].to_vec(), rest),
            _ => {}
        }
        let child = [here.as_slice(), std::slice::from_ref(first)].concat();
        let mut found = if self.0.contains_key(&child) { further(&child, rest) } else { Vec::new() };
        let Some(module) = self.0.get(here) else { return found };
        if rooms.iter().any(|room| here.first().is_some_and(|name| name == room)) {
            let own = module.items.iter().enumerate().filter(|(_, item)| item.name == *first);
            found.extend(own.map(|(at, _)| (here.clone(), at)));
        }
        for (_, path) in module.uses.iter().filter(|(name, _)| name == first) {
            found.extend(self.resolve(here, &[path.as_slice(), rest].concat(), rooms, depth + 1));
        }
        for (_, path) in module.uses.iter().filter(|(name, _)| name == "*") {
            found.extend(self.resolve(here, &[path.as_slice(), name].concat(), rooms, depth + 1));
        }
        found
    }
}

/// `src/kit/ipc.rs` is `kit::ipc`; the root of the crate has no name.
fn module_of(path: &str) -> Path {
    let name = path.trim_start_matches("src/").trim_end_matches(".rs");
    if name == "lib" { Path::new() } else { name.split('/').map(str::to_owned).collect() }
}

fn collect(path: Path, items: Vec<Item>, modules: &mut BTreeMap<Path, Module>) {
    let mut module = Module::default();
    for item in items {
        module.syntax.push(item.clone());
        match item {
            Item::Use(item) => leaves(&item.tree, &[], &mut module.uses),
            Item::Mod(inline) if is_test(&inline.attrs) => {}
            Item::Mod(inline) => {
                if let Some((_, items)) = inline.content {
                    collect([path.as_slice(), &[inline.ident.to_string()]].concat(), items, modules);
                }
            }
            item => module.items.extend(definitions(&item)),
        }
    }
    let known = modules.entry(path).or_default();
    known.items.extend(module.items);
    known.uses.extend(module.uses);
    known.syntax.extend(module.syntax);
}

fn definitions(item: &Item) -> Vec<Definition> {
    let tokens = bare(item.to_token_stream());
    let (text, mut uses) = (tokens.to_string(), Vec::new());
    named(&tokens, &mut uses);
    uses.sort_unstable();
    uses.dedup();
    let named = defined(item).into_iter();
    named.map(|name| Definition { name, text: text.clone(), uses: uses.clone() }).collect()
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| a.path().is_ident("cfg") && a.to_token_stream().to_string().contains("test"))
}

/// The names by which an item is reached. An implementation is reached with its type; a macro that is called between
/// items defines nobody knows what, and so is reached with its module's every name.
fn defined(item: &Item) -> Vec<String> {
    let one = |ident: &syn::Ident| vec![ident.to_string()];
    match item {
        Item::Const(item) => one(&item.ident),
        Item::Enum(item) => one(&item.ident),
        Item::Fn(item) => one(&item.sig.ident),
        Item::Static(item) => one(&item.ident),
        Item::Struct(item) => one(&item.ident),
        Item::Trait(item) => one(&item.ident),
        Item::Type(item) => one(&item.ident),
        Item::Union(item) => one(&item.ident),
        Item::Impl(item) => {
            let mut paths = Vec::new();
            named(&item.self_ty.to_token_stream(), &mut paths);
            paths.first().and_then(|path| path.last()).cloned().into_iter().collect()
        }
        Item::Macro(item) if item.ident.is_some() => item.ident.iter().map(ToString::to_string).collect(),
        Item::Macro(item) => words(&item.mac.tokens),
        Item::ForeignMod(item) => words(&item.to_token_stream()),
        _ => Vec::new(),
    }
}

/// Every identifier of these tokens once.
fn words(tokens: &TokenStream) -> Vec<String> {
    let mut paths = Vec::new();
    named(tokens, &mut paths);
    let all: BTreeSet<String> = paths.into_iter().flatten().collect();
    all.into_iter().collect()
}

/// The names that a `use` brings in, and where each leads.
pub fn leaves(tree: &UseTree, above: &[String], found: &mut Vec<(String, Path)>) {
    let with = |name: &syn::Ident| match name.to_string() {
        name if name == "self" => above.to_vec(),
        name => [above, &[name]].concat(),
    };
    match tree {
        UseTree::Path(path) => leaves(&path.tree, &[above, &[path.ident.to_string()]].concat(), found),
        UseTree::Name(name) => {
            let path = with(&name.ident);
            found.extend(path.last().cloned().map(|last| (last, path)));
        }
        UseTree::Rename(name) => found.push((name.rename.to_string(), with(&name.ident))),
        UseTree::Glob(_) => found.push(("*".into(), above.to_vec())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, above, found)),
    }
}

/// Every path of names in these tokens, however deep: `a::b` is one of two parts.
fn named(tokens: &TokenStream, found: &mut Vec<Path>) {
    let mut path = Path::new();
    let mut colons = 0;
    for token in tokens.clone() {
        match token {
            TokenTree::Ident(ident) => {
                if colons != 2 {
                    found.extend((!path.is_empty()).then(|| std::mem::take(&mut path)));
                }
                path.push(ident.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' && colons < 2 => colons += 1,
            other => {
                found.extend((!path.is_empty()).then(|| std::mem::take(&mut path)));
                colons = 0;
                if let TokenTree::Group(group) = other {
                    named(&group.stream(), found);
                }
            }
        }
    }
    found.extend((!path.is_empty()).then_some(path));
}

/// Without documentation and without what is compiled for tests only.
pub fn bare(tokens: TokenStream) -> TokenStream {
    let mut out: Vec<TokenTree> = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group)
                if group.delimiter() == Delimiter::Bracket && is_document(&out, &group) =>
            {
                out.pop();
                // The mark of an inner attribute is `#!`.
                if matches!(out.last(), Some(TokenTree::Punct(mark)) if mark.as_char() == '#') {
                    out.pop();
                }
            }
            TokenTree::Group(group) => {
                let inner = proc_macro2::Group::new(group.delimiter(), bare(group.stream()));
                out.push(TokenTree::Group(inner));
            }
            other => out.push(other),
        }
    }
    out.into_iter().collect()
}

/// Whether the bracket is that of `#[doc = "…"]`.
fn is_document(before: &[TokenTree], bracket: &proc_macro2::Group) -> bool {
    let marked = matches!(before.last(), Some(TokenTree::Punct(mark)) if mark.as_char() == '#' || mark.as_char() == '!');
    let first = bracket.stream().into_iter().next();
    marked && matches!(first, Some(TokenTree::Ident(name)) if name == "doc")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(files: &[(&str, &str)]) -> String {
        let house = files.iter().fold(House::default(), |house, (path, text)| house.with(path, text));
        Crate::parse(&house).reached(&vec!["suite".into(), "a".into()], &["suite", "platform"])
    }

    const GROUP: (&str, &str) =
        ("src/suite/a.rs", "use crate::platform::{time, Word};\nfn run(w: Word) { time::now(); w.set(); }");
    const TIME: (&str, &str) =
        ("src/platform/time.rs", "/// Doc.\npub fn now() { inner() }\nfn inner() { tick!() }\nfn other() {}");
    const WORD: (&str, &str) = ("src/platform.rs", "pub use word::Word;\nmod word;\npub mod time;");
    const TYPE: (&str, &str) = (
        "src/platform/word.rs",
        "pub struct Word;\nimpl Word { fn set(self) { deep() } }\nfn deep() {}\nfn left() {}",
    );

    #[test]
    fn functions_are_followed_and_types_with_their_methods() {
        let text = reached(&[GROUP, TIME, WORD, TYPE]);
        for name in ["fn run", "fn now", "fn inner", "fn set", "fn deep"] {
            assert!(text.contains(name), "{name} is missing in {text}");
        }
        assert!(!text.contains("fn other") && !text.contains("fn left") && !text.contains("Doc"), "{text}");
    }

    #[test]
    fn what_is_renamed_or_taken_by_a_glob_is_followed() {
        let group =
            ("src/suite/a.rs", "use crate::platform::*;\nuse super::b as c;\nfn run() { now(); c::far() }");
        let platform = ("src/platform.rs", "pub fn now() {}\npub fn idle() {}");
        let sibling = ("src/suite/b.rs", "pub fn far() {}");
        let text = reached(&[group, platform, sibling, ("src/suite.rs", "mod a;\nmod b;")]);
        assert!(text.contains("fn now") && text.contains("fn far") && !text.contains("fn idle"), "{text}");
    }

    #[test]
    fn a_room_that_is_not_followed_and_tests_are_left_out() {
        let group =
            ("src/suite/a.rs", "fn run() { crate::record::save() }\n#[cfg(test)]\nmod tests { fn t() {} }");
        let text = reached(&[group, ("src/record.rs", "pub fn save() {}")]);
        assert!(!text.contains("fn save") && !text.contains("fn t"), "{text}");
    }

    #[test]
    fn a_macro_that_defines_functions_is_followed_by_their_names() {
        let group = ("src/suite/a.rs", "use crate::platform::two;\nfn run() { two() }");
        let platform =
            ("src/platform.rs", "macro_rules! make { ($a:ident) => { pub fn $a() {} } }\nmake!(two);");
        let text = reached(&[group, platform]);
        assert!(text.contains("make ! (two)") || text.contains("make ! { two }"), "{text}");
    }
}
