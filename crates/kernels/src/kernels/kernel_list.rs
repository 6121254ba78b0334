//! `syscost kernels list` and `fetch`: which kernels there are, and having one of Debian's.

use super::counting::kernel_supply;
use crate::guest::debian;
use crate::guest::kernel::installed_releases;
use std::process::ExitCode;
use syscost_command_line::flag::Home;
use syscost_command_line::page;
use syscost_engine::driver::layout;
use syscost_platform::error::Result;

/// Print the kernels that can be booted: installed, downloaded, and Debian's packages
///
/// In a pipe: one kernel a line, with its name, version, and where it is, between tabs.
#[derive(clap::Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    home: Home,
}

/// Download a kernel of Debian's, without installing it
#[derive(clap::Args)]
pub(super) struct FetchArgs {
    /// Version, release or package: 6.12, 6.12-rt, 6.1.0-47
    kernel: String,
    #[command(flatten)]
    home: Home,
}

pub(super) fn list(args: &ListArgs) -> Result<ExitCode> {
    let downloaded = kernel_supply(&args.home.directory()).downloaded_releases();
    let row = |name: String, version: &str, place: &str| [name, version.to_owned(), place.to_owned()];
    let mut rows: Vec<_> = installed_releases().into_iter().map(|name| row(name, "", "installed")).collect();
    let packages = debian::available_packages();
    for package in packages.as_deref().unwrap_or_default() {
        let there = downloaded.contains(&package.release);
        let place = if there { "downloaded" } else { "package" };
        rows.push(row(package.release.clone(), &package.version, place));
    }
    let is_listed = |name: &String| rows.iter().any(|row| row[0] == *name);
    let withdrawn: Vec<_> = downloaded.into_iter().filter(|name| !is_listed(name)).collect();
    rows.extend(withdrawn.into_iter().map(|name| row(name, "", "downloaded, package withdrawn")));
    match page::is_piped() {
        true => page::write(&page::tabbed_rows(&rows))?,
        false => page::write(&(page::align_columns(&rows, page::table_width(layout())).join("\n") + "\n"))?,
    }
    if let Err(error) = packages {
        page::warn(&error);
    }
    if rows.is_empty() {
        page::write_to_stderr(
            "there is none: `apt-get update` fetches Debian's lists of packages; an image can be given by its path",
        );
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn fetch(args: &FetchArgs) -> Result<ExitCode> {
    let package = debian::find_package(&args.kernel, &debian::available_packages()?)?;
    let (image, _) = kernel_supply(&args.home.directory()).fetch_image(&package)?;
    page::write(&format!("{}\n", image.display()))?;
    Ok(ExitCode::SUCCESS)
}
