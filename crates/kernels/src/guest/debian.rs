//! Debian's kernels: their packages are downloaded and unpacked, but never installed.

use std::path::Path;
use std::process::Command;
use syscost_platform::error::{Error, Result};
use syscost_platform::process::tool;

/// The beginning of the name of each package with a kernel.
const PREFIX: &str = "linux-image-";

/// A package with a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// `linux-image-6.12.117+deb12-cloud-amd64`.
    pub name: String,
    /// The name without `linux-image-`, which is the output of `uname -r` on this kernel.
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

    /// The numbers in its release and in its version; packages are ordered by them.
    fn sort_key(&self) -> (Vec<u64>, Vec<u64>) {
        (version_numbers(split_flavour(&self.release).0), version_numbers(&self.version))
    }

    /// Whether this package's release or version is `version`, or begins with it at the end of a number.
    fn has_version(&self, version: &str) -> bool {
        let begins = |text: &str| {
            text.strip_prefix(version).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        begins(split_flavour(&self.release).0) || begins(&self.version)
    }

    /// Whether both have the same variant of Debian's configuration.
    pub fn has_same_flavour(&self, other: &Self) -> bool {
        self.flavour() == other.flavour()
    }
}

/// Splits a name into version and flavour. A name without a flavour means the flavour for virtual machines (cloud).
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

/// All packages with a kernel that Debian offers now, the oldest first.
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

/// The names of the packages with a kernel: without debug symbols, unsigned images and meta-packages.
fn kernel_package_names(search: &str) -> Vec<String> {
    let names = search.lines().filter_map(|line| line.split(' ').next());
    let of_kernels = names.filter(|name| {
        let release = name.strip_prefix(PREFIX).unwrap_or_default();
        release.ends_with("-amd64") && version_numbers(split_flavour(release).0).len() > 2
    });
    of_kernels.map(str::to_owned).collect()
}

/// The packages in the output of `apt-cache show`, the oldest first.
fn parse_packages(shown: &str) -> Vec<Package> {
    let field =
        |part: &str, key: &str| part.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned);
    let package = |part: &str| {
        let name = field(part, "Package: ")?;
        let release = name.strip_prefix(PREFIX)?.to_owned();
        // The release becomes the name of a directory.
        syscost_engine::record::store::check_name(&release, "release").ok()?;
        Some(Package { release, version: field(part, "Version: ")?, name })
    };
    let mut packages: Vec<_> = shown.split("\n\n").filter_map(package).collect();
    packages.sort_by_key(Package::sort_key);
    packages.dedup_by(|a, b| a.name == b.name);
    packages
}

/// The newest package that fits `name`: a package's name, a release, or a version such as `6.12`, `6.12-rt`, `6.1.0-47`.
///
/// # Errors
/// No package fits.
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

/// The packages of the flavour of `good` from `good` to `bad`, both included, in this order.
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

/// Downloads a package and moves its directory `/boot` to `place`. After an error there is nothing at `place`.
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
    // Another process may have put the same package there meanwhile.
    let put = std::fs::rename(unpacked.join("boot"), place);
    put.or_else(|e| if place.is_dir() { Ok(()) } else { Err(Error::file(place, "putting a kernel at", e)) })
}

/// Runs a program and returns its standard output; an error if it fails.
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
    fn names_of_other_packages_are_left_out() {
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
    fn a_version_selects_its_newest_package() {
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
    fn a_missing_package_is_an_error_with_advice() {
        let said = find_package("6.1.0-4", &some()).expect_err("withdrawn").to_string();
        assert!(said.contains("withdrawn") && said.contains("kernels list"), "{said}");
        assert!(find_package("6.1", &[]).expect_err("none").to_string().contains("apt-get update"));
    }

    #[test]
    fn packages_between_two_have_their_flavour_and_their_order() {
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
    fn a_missing_program_is_an_error_with_advice() {
        let said =
            run_for_output(&mut Command::new("no-such-program-here")).expect_err("missing").to_string();
        assert!(said.contains("give a path"), "{said}");
        assert!(run_for_output(&mut Command::new("false")).is_err());
    }
}
