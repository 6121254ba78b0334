//! Faults on the pages of a file. All its pages are in the page cache, or only the touched ones.

use super::touch::{Expected, Touches};
use super::with_fault_claims;
use crate::kit::contract::*;
use crate::kit::evidence::WithEvidence;
use crate::platform::evictable::Evictable;
use crate::platform::region::{Order, PAGE};
use crate::statistic::Random;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// Pages that one iteration touches: 1 MiB.
const EXTENT: usize = 256;
/// Lengths of the files, bytes.
const SMALL: usize = 4 << 20;
const LARGE: usize = 16 << 20;
/// Pages of the window within which a fault may map neighbours as well (`fault_around_bytes`, 64 KiB).
const WINDOW: usize = 16;

pub(super) fn cases() -> Vec<Case> {
    let why = "sixteen exceptions, and 256 pages found in the cache and entered into the table";
    #[rustfmt::skip]
    let cases = vec![
        cached_file_case("cached-sequential/1MiB", "1 MiB of a cached file touched, page by page", Order::Untold)
            .predict(16.0 * 700.0, 256.0 * 60.0, why),
        cached_file_case("cached-random/1MiB", "1 MiB of a cached file touched, in random order", Order::Random)
            .predict(16.0 * 700.0, 256.0 * 80.0, why),
        single_page_case(),
    ];
    cases
}

/// A case with all pages in the cache. They are touched in the order that the kernel was advised of.
fn cached_file_case(name: &str, title: &str, order: Order) -> Case {
    let set_up = set_up(move |place| {
        let mut file = Evictable::on_any_filesystem(&place.scratch, SMALL)?;
        let (cached, pages) = (file.count_cached_pages()?, file.region().page_count());
        if cached < pages {
            return Err(Error::Missing(format!(
                "{cached} of {pages} pages of a file that was just written are in the page cache: free some memory"
            )));
        }
        let mut numbers: Vec<_> = (0..EXTENT).collect();
        if order == Order::Random {
            Random::new(EXTENT as u64).shuffle(&mut numbers);
        }
        file.region().advise_order(order)?;
        let told = file.shrink_reason().map(str::to_owned);
        let file = Rc::new(file);
        let (unmapped, touched) = (Rc::clone(&file), file);
        let prepare = move |_: usize| unmapped.region().discard(0..EXTENT);
        let touch = move |_: usize| {
            let region = touched.region();
            black_box(numbers.iter().map(|page| u64::from(region.read_first_byte(*page))).sum::<u64>());
        };
        let touches = Touches::new(1, Expected::AtMostOneEach, prepare, touch).with_touches_each(EXTENT);
        Ok(WithEvidence::new(touches, told))
    });
    with_fault_claims(Case::new(name, title, set_up).need(FOUR_KIB), Expected::AtMostOneEach)
        .claim(Claim::Linear)
        .derived_figure("fault", Rule::PerEvent)
        .derived_figure("touch", Rule::OfCost(1.0 / EXTENT as f64))
        .derived_figure("byte", Rule::OfCost(1.0 / (EXTENT * PAGE) as f64))
}

/// A case with only one page of each window in the cache, so that a fault cannot map a neighbour.
fn single_page_case() -> Case {
    let set_up = set_up(|place| {
        let mut file = Evictable::new(&place.scratch, LARGE)?;
        let windows = file.region().page_count() / WINDOW;
        file.evict()?;
        read_first_pages(&file, windows)?;
        let cached = file.count_cached_pages()?;
        if cached != windows {
            return Err(Error::Missing(format!(
                "{windows} single pages were read and {cached} are in the page cache: this file system reads more \
                 than it is asked for"
            )));
        }
        let told = file.shrink_reason().map(str::to_owned);
        let file = Rc::new(file);
        let (unmapped, touched) = (Rc::clone(&file), file);
        let prepare = move |windows: usize| unmapped.region().discard(0..windows * WINDOW);
        let touch = move |windows: usize| _ = black_box(touched.region().read(0..windows * WINDOW, WINDOW));
        let touches = Touches::new(windows, Expected::OneEach, prepare, touch);
        Ok(WithEvidence::new(touches, told))
    });
    let title = "a page of a file touched that is in the cache without its neighbours";
    let why = "an exception, a page found in the cache and entered, fifteen looked for in vain";
    with_fault_claims(Case::new("cached-alone/4KiB", title, set_up).need(FOUR_KIB), Expected::OneEach)
        .claim(Claim::Checked("of each 64 KiB of the file one page was in the page cache, by mincore"))
        .claim(Claim::Linear)
        .derived_figure("byte", Rule::OfCost(1.0 / PAGE as f64))
        .predict(700.0, 900.0, why)
}

/// Reads the first page of each window.
fn read_first_pages(file: &Evictable, windows: usize) -> Result<()> {
    let advised = posix_fadvise(file.file(), 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM);
    advised.map_err(|errno| Error::from_errno("posix_fadvise POSIX_FADV_RANDOM", errno))?;
    for window in 0..windows {
        let read = file.file().read_exact_at(&mut [0], (window * WINDOW * PAGE) as u64);
        read.map_err(|cause| Error::Kernel { call: "pread of a page".into(), cause })?;
    }
    Ok(())
}
