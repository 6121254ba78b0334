//! The loops of any other processor, in the compiler's code: words of eight bytes, each loaded and stored by itself.
//!
//! # Invariants
//!
//! * **INSIDE**: as in `stream`. `bytes` is a multiple of the block.
#![allow(unsafe_code)]

use super::{Loop, Means, Operation};

/// The other means belong to processors that have a module of their own.
pub(super) fn is_offered(means: Means) -> bool {
    matches!(means, Means::Scalar | Means::Library)
}

/// Waits until all earlier stores are visible to all CPUs.
#[inline(always)]
pub fn fence() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// Defines a loop over words: what it loads of the three arrays, and what it stores for them.
macro_rules! turns {
    ($name:ident, |$to:ident, $x:ident, $y:ident, $constant:ident| $stored:expr) => {
        #[inline(never)]
        unsafe fn $name(
            to: *mut u8,
            x: *const u8,
            y: *const u8,
            bytes: usize,
            passes: u64,
            $constant: u64,
        ) -> u64 {
            let (to, x, y) = (to.cast::<u64>(), x.cast::<u64>(), y.cast::<u64>());
            for at in (0..passes).flat_map(|_| 0..bytes / 8) {
                // SAFETY: INSIDE: a closure is called for those arrays only that the operation uses.
                unsafe {
                    let $to = || to.add(at).read_volatile();
                    let $x = || x.add(at).read_volatile();
                    let $y = || y.add(at).read_volatile();
                    let _ = (&$to, &$x, &$y);
                    to.add(at).write_volatile($stored);
                }
            }
            0
        }
    };
}

turns!(write, |to, x, y, constant| constant);
turns!(copy, |to, x, y, _constant| x());
turns!(update, |to, x, y, constant| to().wrapping_add(constant));
turns!(scale, |to, x, y, constant| (f64::from_bits(constant) * f64::from_bits(x())).to_bits());
turns!(add, |to, x, y, _constant| (f64::from_bits(x()) + f64::from_bits(y())).to_bits());
turns!(triad, |to, x, y, constant| {
    (f64::from_bits(x()) + f64::from_bits(constant) * f64::from_bits(y())).to_bits()
});

#[inline(never)]
unsafe fn read(_: *mut u8, x: *const u8, _: *const u8, bytes: usize, passes: u64, _: u64) -> u64 {
    let words = (0..passes).flat_map(|_| 0..bytes / 8);
    // SAFETY: INSIDE.
    words
        .fold(0, |sum, at| sum.wrapping_add(u64::from_le(unsafe { x.cast::<u64>().add(at).read_volatile() })))
}

/// The loop for this operation; `None` for non-temporal stores, which have no portable form.
pub(super) fn turns(operation: Operation, means: Means) -> Option<Loop> {
    match operation {
        _ if means != Means::Scalar => None,
        Operation::Read => Some(read),
        Operation::Write => Some(write),
        Operation::Copy => Some(copy),
        Operation::Update => Some(update),
        Operation::Scale => Some(scale),
        Operation::Add => Some(add),
        Operation::Triad => Some(triad),
        Operation::WriteNonTemporal | Operation::CopyNonTemporal => None,
    }
}

/// The loop that prefetches: there is none.
pub(super) fn ahead(_: Operation, _: Means) -> Option<Loop> {
    None
}
