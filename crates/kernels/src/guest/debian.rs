//! Kernels of Debian, as packages that are downloaded and unpacked and never installed.

use std::path::Path;
use std::process::Command;
use syscost_platform::error::{Error, Result};
use syscost_platform::process::tool;

/// What the names of packages with a kernel begin with.
const PREFIX: &str = "linux-image-";

/// A package with a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// `linux-image-6.12.117+deb12-cloud-amd64`.
    pub name: String,
    /// The same without `linux-image-`: what `uname -r` says.
    pub release: String,
    /// The package's version: `6.1.192-2`.
    pub version: String,
}

/// The variant of Debian's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavour {
    Cloud,
    Realtime,
    Plain,
}

impl Package {
    fn flavour(&self) -> Flavour {
        split_flavour(&self.release).1
    }

    /// The numbers of its release and version, by which packages are ordered.
    fn sort_key(&self) -> (Vec<u64>, Vec<u64>) {
        (version_numbers(split_flavour(&self.release).0), version_numbers(&self.version))
    }

    /// Whether `version` is this package's release or version, or begins it at a boundary.
    fn has_version(&self, version: &str) -> bool {
        let begins = |text: &str| {
            text.strip_prefix(version).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        begins(split_flavour(&self.release).0) || begins(&self.version)
    }

    /// Whether both are of one variant of Debian's configuration.
    pub fn has_same_flavour(&self, other: &Self) -> bool {
        self.flavour() == other.flavour()
    }
}

/// Splits a name into version and flavour. A name without a flavour means the one for virtual machines (cloud).
fn split_flavour(name: &str) -> (&str, Flavour) {
    let endings = [
        ("-cloud-amd64", Flavour::Cloud),
        ("-rt-amd64", Flavour::Realtime),
        ("-amd64", Flavour::Plain),
        ("-cloud", Flavour::Cloud),
        ("-rt", Flavour::Realtime),
    ];
    let known = endings.iter().find_map(|(ending, flavour)| Some((name.strip_suffix(ending)?, *flavour)));
    known.unwrap_or((name, Flavour::Cloud))
}

pub(crate) fn version_numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// All packages with a kernel that can be had now, the oldest first.
///
/// # Errors
/// There is no `apt-cache`, or it fails.
pub fn available_packages() -> Result<Vec<Package>> {
    let found =
        run_for_output(Command::new("apt-cache").args(["search", "--names-only", "^linux-image-[0-9]"]))?;
    let names = kernel_package_names(&found);
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let shown = run_for_output(Command::new("apt-cache").args(["show", "--no-all-versions"]).args(&names))?;
    Ok(parse_packages(&shown))
}

/// The names of packages that hold a kernel: no debug symbols, no unsigned images, no meta-packages.
fn kernel_package_names(search: &str) -> Vec<String> {
    let names = search.lines().filter_map(|line| line.split(' ').next());
    let of_kernels = names.filter(|name| {
        let release = name.strip_prefix(PREFIX).unwrap_or_default();
        release.ends_with("-amd64") && version_numbers(split_flavour(release).0).len() > 2
    });
    of_kernels.map(str::to_owned).collect()
}

/// Reads what `apt-cache show` says of packages.
fn parse_packages(shown: &str) -> Vec<Package> {
    let field =
        |part: &str, key: &str| part.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned);
    let package = |part: &str| {
        let name = field(part, "Package: ")?;
        let release = name.strip_prefix(PREFIX)?.to_owned();
        // It becomes the name of a directory.
        syscost_engine::record::store::check_name(&release, "release").ok()?;
        Some(Package { release, version: field(part, "Version: ")?, name })
    };
    let mut packages: Vec<_> = shown.split("\n\n").filter_map(package).collect();
    packages.sort_by_key(Package::sort_key);
    packages.dedup_by(|a, b| a.name == b.name);
    packages
}

/// The newest package that `name` means: a package, a release, or a version such as `6.12`, `6.12-rt`, `6.1.0-47`.
///
/// # Errors
/// There is none.
pub fn find_package(name: &str, packages: &[Package]) -> Result<Package> {
    let whole = packages.iter().find(|package| package.name == name || package.release == name);
    let (version, wanted) = split_flavour(name.strip_prefix(PREFIX).unwrap_or(name));
    let of_version =
        || packages.iter().rev().find(|package| package.flavour() == wanted && package.has_version(version));
    whole.or_else(of_version).cloned().ok_or_else(|| no_such_package(name, packages.len()))
}

fn no_such_package(name: &str, count: usize) -> Error {
    let why = match count {
        0 => "the package lists hold no kernel at all (`apt-get update` fetches them)".into(),
        count => format!("it is none of the {count} that can be had now, and old ones are withdrawn"),
    };
    Error::Usage(format!(
        "{name}: there is no such kernel here, and no such Debian package: {why}; `syscost kernels list` shows them; a \
         path needs a slash, such as ./bzImage"
    ))
}

/// The packages from `good` to `bad`, both included, the oldest first, of the flavour of `good`.
pub fn packages_between(good: &Package, bad: &Package, packages: &[Package]) -> Vec<Package> {
    let (first, last) = (good.sort_key().min(bad.sort_key()), good.sort_key().max(bad.sort_key()));
    let inside = packages.iter().filter(|package| {
        package.has_same_flavour(good) && (first.clone()..=last.clone()).contains(&package.sort_key())
    });
    let mut inside: Vec<_> = inside.cloned().collect();
    if good.sort_key() > bad.sort_key() {
        inside.reverse();
    }
    inside
}

/// Downloads a package and puts what it has in `/boot` at `place`, whole or not at all.
///
/// # Errors
/// There is no `apt-get` or `dpkg`, the package is gone, or the disk is full.
pub fn download_package(package: &Package, place: &Path) -> Result<()> {
    let home = place.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(home).map_err(|e| Error::file(home, "making", e))?;
    let temporary = tempfile::Builder::new().prefix(".fetching-").tempdir_in(home);
    let temporary = temporary.map_err(|e| Error::file(home, "making a directory in", e))?;
    run_for_output(
        Command::new("apt-get").args(["--quiet", "download", &package.name]).current_dir(temporary.path()),
    )?;
    let archive =
        std::fs::read_dir(temporary.path()).map_err(|e| Error::file(temporary.path(), "reading", e))?;
    let archive =
        archive.flatten().map(|entry| entry.path()).find(|path| path.extension().is_some_and(|e| e == "deb"));
    let archive =
        archive.ok_or_else(|| Error::Missing(format!("apt-get downloaded no file of {}", package.name)))?;
    let unpacked = temporary.path().join("unpacked");
    run_for_output(Command::new("dpkg").arg("-x").arg(&archive).arg(&unpacked))?;
    // Another process may have put the same there meanwhile.
    let put = std::fs::rename(unpacked.join("boot"), place);
    put.or_else(|e| if place.is_dir() { Ok(()) } else { Err(Error::file(place, "putting a kernel at", e)) })
}

/// The standard output of a program that ends well.
fn run_for_output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let answer = command.env("LC_ALL", "C").stdin(std::process::Stdio::null()).output();
    let answer = answer.map_err(|e| {
        Error::Missing(format!(
            "{program} cannot be started ({e}): kernels are fetched on Debian and its kin; give a path"
        ))
    })?;
    if answer.status.success() {
        return Ok(String::from_utf8_lossy(&answer.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&answer.stderr);
    Err(Error::Missing(match said.lines().find(|line| line.starts_with("E:")) {
        Some(error) => format!("{program} failed: {}", super::console::printable_line(error)),
        None => format!("{program} failed {}", tool::failure_message(&answer)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEARCH: &str = "linux-image-6.1.0-47-amd64-dbg - Debug symbols\n\
        linux-image-6.1.0-47-cloud-amd64-unsigned - Linux 6.1\nlinux-image-6.1.0-47-cloud-amd64 - Linux 6.1 (signed)\n\
        linux-image-6.12-amd64 - Linux for 64-bit PCs (meta-package)\nlinux-image-6.12.117+deb12-rt-amd64 - Linux\n";

    fn package(release: &str, version: &str) -> Package {
        Package { name: format!("{PREFIX}{release}"), release: release.into(), version: version.into() }
    }

    fn some() -> Vec<Package> {
        vec![
            package("6.1.0-47-cloud-amd64", "6.1.170-3"),
            package("6.1.0-56-cloud-amd64", "6.1.192-2"),
            package("6.1.0-56-rt-amd64", "6.1.192-2"),
            package("6.12.100+deb12-cloud-amd64", "6.12.100-1~deb12u1"),
            package("6.12.117+deb12-cloud-amd64", "6.12.117-1~deb12u1"),
            package("6.12.117+deb12-rt-amd64", "6.12.117-1~deb12u1"),
        ]
    }

    #[test]
    fn only_packages_with_a_kernel_are_taken() {
        assert_eq!(
            kernel_package_names(SEARCH),
            ["linux-image-6.1.0-47-cloud-amd64", "linux-image-6.12.117+deb12-rt-amd64"]
        );
    }

    #[test]
    fn packages_are_read_and_ordered_by_number_and_not_by_letter() {
        let shown = "Package: linux-image-6.1.0-100-cloud-amd64\nVersion: 6.1.400-1\nDepends: x\n\n\
            Package: linux-image-6.1.0-56-cloud-amd64\nSource: y\nVersion: 6.1.192-2\n\nPackage: linux-image-../x\nVersion: 1\n";
        let releases: Vec<_> = parse_packages(shown).into_iter().map(|package| package.release).collect();
        assert_eq!(releases, ["6.1.0-56-cloud-amd64", "6.1.0-100-cloud-amd64"]);
    }

    #[test]
    fn a_version_means_its_newest_package() {
        for (name, release) in [
            ("6.12", "6.12.117+deb12-cloud-amd64"),
            ("6.12-rt", "6.12.117+deb12-rt-amd64"),
            ("6.1", "6.1.0-56-cloud-amd64"),
            ("6.1.0-47", "6.1.0-47-cloud-amd64"),
            ("6.1.170", "6.1.0-47-cloud-amd64"),
            ("6.1.192-rt", "6.1.0-56-rt-amd64"),
            ("linux-image-6.12.100+deb12-cloud-amd64", "6.12.100+deb12-cloud-amd64"),
        ] {
            assert_eq!(find_package(name, &some()).expect(name).release, release, "{name}");
        }
    }

    #[test]
    fn a_package_that_is_gone_is_a_sentence() {
        let said = find_package("6.1.0-4", &some()).expect_err("withdrawn").to_string();
        assert!(said.contains("withdrawn") && said.contains("kernels list"), "{said}");
        assert!(find_package("6.1", &[]).expect_err("none").to_string().contains("apt-get update"));
    }

    #[test]
    fn what_lies_between_two_packages_is_of_their_flavour_and_in_their_order() {
        let all = some();
        let releases = |good: usize, bad: usize| {
            packages_between(&all[good], &all[bad], &all)
                .into_iter()
                .map(|package| package.version)
                .collect::<Vec<_>>()
        };
        assert_eq!(releases(0, 3), ["6.1.170-3", "6.1.192-2", "6.12.100-1~deb12u1"]);
        assert_eq!(releases(1, 0), ["6.1.192-2", "6.1.170-3"]);
    }

    #[test]
    fn a_program_that_is_not_there_is_a_sentence() {
        let said =
            run_for_output(&mut Command::new("no-such-program-here")).expect_err("missing").to_string();
        assert!(said.contains("give a path"), "{said}");
        assert!(run_for_output(&mut Command::new("false")).is_err());
    }
}
