//! The shipped code of the workspace as syntax: items by module.

use crate::house::{House, Source};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::BTreeMap;
use syn::{Attribute, Item, UseTree};

/// Names from the crate's root to a module or an item.
pub type Path = Vec<String>;

/// Items by module. The modules of `crates/NAME` begin with `syscost_NAME`; those of the root package have no such name.
pub struct Crate(pub BTreeMap<Path, Vec<Item>>);

impl Crate {
    /// Parses the code that is compiled for users, for all architectures.
    pub fn parse(house: &House) -> Self {
        let mut modules = BTreeMap::new();
        for (path, _) in house.shipped() {
            let file = syn::parse_file(house.text(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
            collect(module_of(path), file.items, &mut modules);
        }
        Self(modules)
    }
}

/// `src/kit/ipc.rs` is `kit::ipc`, `crates/counters/src/disk.rs` is `syscost_counters::disk`. The root package has no name.
fn module_of(path: &str) -> Path {
    let Some(source) = Source::from_path(path) else { return Path::new() };
    let own = source.inner.trim_end_matches(".rs").split('/').filter(|part| *part != "lib");
    let name = source.package.map(|package| format!("syscost_{package}"));
    name.into_iter().chain(own.map(str::to_owned)).collect()
}

/// The root of the crate that a module belongs to.
pub fn crate_root(module: &Path) -> Path {
    module.first().filter(|name| name.starts_with("syscost_")).cloned().into_iter().collect()
}

fn collect(path: Path, items: Vec<Item>, modules: &mut BTreeMap<Path, Vec<Item>>) {
    let mut own = Vec::new();
    for item in items {
        match &item {
            Item::Mod(inline) if is_test(&inline.attrs) => continue,
            Item::Mod(inline) => {
                if let Some((_, items)) = &inline.content {
                    let below = [path.as_slice(), &[inline.ident.to_string()]].concat();
                    collect(below, items.clone(), modules);
                }
            }
            _ => {}
        }
        own.push(item);
    }
    modules.entry(path).or_default().extend(own);
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| a.path().is_ident("cfg") && a.to_token_stream().to_string().contains("test"))
}

/// The names that a `use` brings in, and the path of each.
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

/// The tokens without documentation and without items that are compiled only for tests.
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
