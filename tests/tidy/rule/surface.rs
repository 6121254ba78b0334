//! Rule: a list holds all that a user of a library can name, so that a change of the public interface is noticed.
//!
//! A line is a public item, method or field with its signature. Items that are hidden from the documentation are left out.

use crate::house::House;
use crate::syntax::{Crate, Path, bare, crate_root, leaves};
use quote::ToTokens;
use std::collections::BTreeSet;
use syn::{Attribute, Fields, ImplItem, Item, TraitItem, Visibility};

/// The libraries that others build on, and the list of each. The first is the root's, with what it shows of the engine.
pub const LISTS: [(&str, &str); 3] = [
    ("", "fixtures/api.txt"),
    ("syscost_counters", "crates/counters/api.txt"),
    ("syscost_technique", "crates/technique/api.txt"),
];

pub fn complaints(house: &House) -> Vec<String> {
    LISTS.iter().flat_map(|(library, path)| complaints_on(house, library, path)).collect()
}

fn complaints_on(house: &House, library: &str, path: &str) -> Vec<String> {
    let (found, written) = (lines(house, library), house.text(path));
    let written: BTreeSet<_> = written.lines().map(str::to_owned).collect();
    let new =
        found.difference(&written).map(|line| format!("{path}: it lacks `{line}`: public by intention?"));
    let gone = written
        .difference(&found)
        .map(|line| format!("{path}: `{line}` is public no more: a breaking change"));
    let all: Vec<_> = new.chain(gone).collect();
    match all.is_empty() {
        true => all,
        false => [all, vec![format!("{path}: `scripts/api` writes it anew")]].concat(),
    }
}

/// The lines that the list of a library should hold.
pub fn lines(house: &House, library: &str) -> BTreeSet<String> {
    let root: Path = Some(library.to_owned()).filter(|name| !name.is_empty()).into_iter().collect();
    let mut found = BTreeSet::new();
    module(house.syntax(), &root, &Path::new(), &mut found);
    found
}

/// The public items of the module at `here`, which users know as `name`.
fn module(syntax: &Crate, here: &Path, name: &Path, found: &mut BTreeSet<String>) {
    let Some(module_here) = syntax.0.get(here) else { return };
    for item in module_here {
        match item {
            Item::Mod(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                let ident = item.ident.to_string();
                module(syntax, &below(here, &ident), &below(name, &ident), found);
            }
            Item::Use(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                let mut uses = Vec::new();
                leaves(&item.tree, &[], &mut uses);
                uses.iter()
                    .for_each(|(alias, path)| exported(syntax, here, path, &below(name, alias), found));
            }
            item => one(syntax, here, item, name, found),
        }
    }
}

/// Adds the items that a `pub use` of `path` in the module `here` exports as `name`.
fn exported(syntax: &Crate, here: &Path, path: &[String], name: &Path, found: &mut BTreeSet<String>) {
    let path = &through_alias(syntax, here, path);
    let Some((last, above)) = path.split_last() else { return };
    let at = above.iter().fold(here.clone(), |at, part| match part.as_str() {
        "crate" => crate_root(&at),
        part if crate_root(&at).is_empty() && part.starts_with("syscost_") => vec![part.to_owned()],
        "self" => at,
        "super" => at[..at.len().saturating_sub(1)].to_vec(),
        part => below(&at, part),
    });
    if last == "*" {
        return module(syntax, &at, &name[..name.len() - 1].to_vec(), found);
    }
    if syntax.0.contains_key(&below(&at, last)) {
        return module(syntax, &below(&at, last), name, found);
    }
    // A path of one part is another crate's: nothing of ours stands beside its own `use`.
    let Some(source) = syntax.0.get(&at).filter(|_| !above.is_empty()) else {
        found.insert(format!("use {} = {}", name.join("::"), path.join("::")));
        return;
    };
    let parent = name[..name.len() - 1].to_vec();
    for item in source {
        match item {
            Item::Use(item) => {
                let mut uses = Vec::new();
                leaves(&item.tree, &[], &mut uses);
                let next = uses.iter().filter(|(alias, path)| alias == last && path.last() == Some(last));
                next.for_each(|(_, path)| exported(syntax, &at, path, name, found));
            }
            item if ident(item).as_deref() == Some(last) => one(syntax, &at, item, &parent, found),
            _ => {}
        }
    }
}

/// The path with its first part replaced, where that is the name that a `use` of this module gives to a path.
fn through_alias(syntax: &Crate, here: &Path, path: &[String]) -> Path {
    let Some((first, rest)) = path
        .split_first()
        .filter(|(first, rest)| !rest.is_empty() && !syntax.0.contains_key(&below(here, first)))
    else {
        return path.to_vec();
    };
    let mut uses = Vec::new();
    for item in syntax.0.get(here).into_iter().flatten() {
        if let Item::Use(item) = item {
            leaves(&item.tree, &[], &mut uses);
        }
    }
    let named = uses.into_iter().find(|(alias, _)| alias == first);
    named.map_or_else(|| path.to_vec(), |(_, path)| [path, rest.to_vec()].concat())
}

/// Adds one item, and its methods that stand in the module of the item.
fn one(syntax: &Crate, here: &Path, item: &Item, above: &Path, found: &mut BTreeSet<String>) {
    let Some(ident) = ident(item) else { return };
    let name = below(above, &ident).join("::");
    let mut add = |kind: &str, rest: &dyn ToTokens| {
        let rest = bare(rest.to_token_stream()).to_string();
        found.insert(format!("{kind} {name} {rest}").trim_end().to_owned());
    };
    match item {
        Item::Fn(item) if is_public(&item.vis) => return add("fn", &item.sig),
        Item::Const(item) if is_public(&item.vis) => return add("const", &item.ty),
        Item::Type(item) if is_public(&item.vis) => return add("type", &item.ty),
        Item::Trait(item) if is_public(&item.vis) => {
            add("trait", &item.supertraits);
            let functions = item.items.iter().filter_map(|part| match part {
                TraitItem::Fn(function) => Some(bare(function.sig.to_token_stream()).to_string()),
                _ => None,
            });
            found.extend(functions.map(|signature| format!("fn {name} :: {signature}")));
            return;
        }
        Item::Struct(item) if is_public(&item.vis) => {
            add("struct", &item.generics);
            found.extend(fields(&item.fields).map(|field| format!("field {name} {field}")));
        }
        Item::Enum(item) if is_public(&item.vis) => {
            add("enum", &item.generics);
            let variant = |v: &syn::Variant| {
                let mut v = v.clone();
                v.attrs.clear();
                v.fields.iter_mut().for_each(|field| field.attrs.clear());
                format!("variant {name} {}", v.to_token_stream())
            };
            found.extend(item.variants.iter().map(variant));
        }
        _ => return,
    }
    // A type's methods may stand in other files of its module's folder.
    let near = syntax.0.iter().filter(|(path, _)| path.starts_with(here)).flat_map(|(_, module)| module);
    found.extend(
        near.flat_map(|other| methods(other, &ident)).map(|signature| format!("fn {name} :: {signature}")),
    );
}

fn methods(item: &Item, of: &str) -> Vec<String> {
    let Item::Impl(item) = item else { return Vec::new() };
    let own = item.self_ty.to_token_stream().to_string();
    if item.trait_.is_some() || own.split([' ', '<']).next() != Some(of) {
        return Vec::new();
    }
    let public = item.items.iter().filter_map(|part| match part {
        ImplItem::Fn(function) if is_public(&function.vis) && !is_hidden(&function.attrs) => {
            Some(bare(function.sig.to_token_stream()).to_string())
        }
        ImplItem::Const(constant) if is_public(&constant.vis) => {
            Some(format!("const {} : {}", constant.ident, constant.ty.to_token_stream()))
        }
        _ => None,
    });
    public.collect()
}

fn fields(fields: &Fields) -> impl Iterator<Item = String> {
    let public =
        fields.iter().enumerate().filter(|(_, field)| is_public(&field.vis) && !is_hidden(&field.attrs));
    public.map(|(at, field)| {
        let name = field.ident.as_ref().map_or_else(|| at.to_string(), ToString::to_string);
        format!("{name} : {}", field.ty.to_token_stream())
    })
}

fn ident(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

fn below(path: &Path, name: &str) -> Path {
    [path.as_slice(), &[name.to_owned()]].concat()
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| {
        a.path().is_ident("doc")
            && matches!(a.meta, syn::Meta::List(_))
            && a.to_token_stream().to_string().contains("hidden")
    })
}

/// What `scripts/api` writes.
#[test]
#[ignore = "it prints the lines of the lists for scripts/api"]
fn surface_as_it_is() {
    for (library, path) in LISTS {
        lines(&crate::this_crate(), library).iter().for_each(|line| println!("api {path} {line}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let house = files.iter().fold(House::default(), |house, (path, text)| house.with(path, text));
        lines(&house, "").into_iter().collect()
    }

    #[test]
    fn what_is_public_is_listed_by_the_name_that_users_know() {
        let lib = (
            "src/lib.rs",
            "mod a;\npub mod b;\npub use a::{Thing, hidden::far};\n#[doc(hidden)]\npub mod i;",
        );
        let a = (
            "src/a.rs",
            "pub mod hidden;\npub struct Thing { pub x: u8, y: u8, #[doc(hidden)] pub z: u8 }\nimpl Thing { pub fn go(&self) {} fn no() {} }",
        );
        let far = ("src/a/hidden.rs", "pub fn far() {}\npub fn left() {}");
        let b = ("src/b.rs", "pub enum E { A, B(u8) }\nfn private() {}\npub fn open(n: u64) -> u64 { n }");
        let i = ("src/i.rs", "pub fn secret() {}");
        assert_eq!(
            found(&[lib, a, far, b, i]),
            [
                "enum b::E",
                "field Thing x : u8",
                "fn Thing :: fn go (& self)",
                "fn b::open fn open (n : u64) -> u64",
                "fn far fn far ()",
                "struct Thing",
                "variant b::E A",
                "variant b::E B (u8)",
            ]
        );
    }

    #[test]
    fn a_new_name_and_a_name_that_went_are_told() {
        let house = House::default().with("src/lib.rs", "pub fn a() {}");
        assert_eq!(complaints(&house).len(), 2, "the line and the advice");
        let written = house.with(LISTS[0].1, "fn a fn a ()\n");
        assert_eq!(complaints(&written), [""; 0]);
        assert_eq!(complaints(&written.with("src/lib.rs", "")).len(), 2);
    }
}
