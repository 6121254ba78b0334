//! Faults that another thread of the process resolves (`userfaultfd`).

use super::operation::{Filling, Userfault};
use super::touch::{Expected, Touches};
use super::with_fault_claims;
use crate::case::need::{FOUR_KIB, PINNED};
use crate::case::{Case, Claim, Place, Report, Rule, Subject, set_up};
use crate::clock::{Clock, Ticks};
use crate::error::{Error, Result};
use crate::kit::placement::Placement;
use crate::platform::partner::{Class, Kind, Partner};
use crate::platform::region::PAGE;
use std::hint::black_box;
use std::sync::Arc;

/// Pages that are prepared at once.
const PAGES: usize = 256;

pub(super) fn cases() -> Vec<Case> {
    let why = "an exception, two sleeps and wake-ups, three calls of the handler, a page made";
    [
        ("userfaultfd/copy", "a page that a thread fills by UFFDIO_COPY when it is touched", Filling::Copy),
        (
            "userfaultfd/zero-page",
            "a page that a thread fills by UFFDIO_ZEROPAGE when it is touched",
            Filling::Zero,
        ),
    ]
    .map(|(name, title, filling)| userfault_case(name, title, filling).predict(6_000.0, 9_000.0, why))
    .into()
}

fn userfault_case(name: &str, title: &str, filling: Filling) -> Case {
    let case = Case::new(name, title, set_up(move |place| start_delegated(place, filling)))
        .need(FOUR_KIB)
        .need(PINNED);
    with_fault_claims(case, Expected::OneEachOfAnyKind)
        .claim(Claim::Checked("the handler filled one page a touch"))
        .claim(Claim::Linear)
        .derived_figure("byte", Rule::OfCost(1.0 / PAGE as f64))
}

/// The touches, the thread that resolves their faults, and the region of both.
struct Delegated<S> {
    touches: S,
    partner: Partner,
    shared: Arc<Userfault>,
}

fn start_delegated(place: &Place, filling: Filling) -> Result<impl Subject + use<>> {
    let shared = Arc::new(Userfault::new(PAGES * PAGE)?);
    let [theirs, nudged, unmapped, touched] = std::array::from_fn(|_| Arc::clone(&shared));
    let at = (Placement::Same.partner_cpu(place)?, Class::Ordinary);
    let step = move || theirs.fill_next_page(filling);
    let partner = Partner::start(Kind::Thread, at, step, move || nudged.wake_filler())?;
    let prepare = move |pages: usize| unmapped.region().discard(0..pages);
    let touch = move |pages: usize| _ = black_box(touched.region().read(0..pages, 1));
    let touches = Touches::new(PAGES, Expected::OneEachOfAnyKind, prepare, touch);
    Ok(Delegated { touches, partner, shared })
}

impl<S: Subject> Subject for Delegated<S> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let before = self.shared.filled_pages();
        let ticks = self.touches.run(iterations, clock);
        if let Some(errno) = self.shared.refused_errno() {
            return Err(Error::from_case_errno("filling a page that was touched", errno));
        }
        check_filled(self.shared.filled_pages() - before, iterations)?;
        ticks
    }

    fn report(&self) -> Report {
        Report { partners: vec![self.partner.task()], ..self.touches.report() }
    }
}

fn check_filled(pages: u64, touches: u64) -> Result<()> {
    if pages == touches {
        return Ok(());
    }
    Err(Error::Disproved(format!("the handler filled {pages} pages where {touches} were touched")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_was_not_filled_is_noticed() {
        assert!(
            check_filled(64, 64).is_ok() && check_filled(63, 64).is_err() && check_filled(65, 64).is_err()
        );
    }
}
