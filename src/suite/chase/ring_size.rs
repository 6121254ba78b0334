//! The sizes of the rings: powers of two, and three sizes between each two.

use crate::case::{Place, Scale};
use crate::kit::socket::size_text;

/// A size and its name in an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) name: String,
    pub(super) bytes: usize,
    /// The exponent, if it is a power of two.
    pub(super) power: Option<u32>,
}

/// A set of sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) range: Range,
    /// The exponents of the sizes that are measured at default scale.
    pub(super) default: &'static [u32],
}

/// The sizes of a series, by exponents of two.
#[derive(Clone, Copy, Debug)]
pub(super) enum Range {
    /// From the first to the last exponent in quarters.
    Quarters(u32, u32),
    /// From the first to the last exponent in whole steps.
    Powers(u32, u32),
    /// Only the sizes of default scale.
    Few,
}

/// Smallest size, bytes, that is assumed to exceed all caches, including caches whose size the kernel does not
/// report.
const MEMORY: usize = 256 << 20;
/// The largest ring that is linked at smoke scale, bytes.
const SMOKE: usize = 16 << 20;

impl Sizes {
    /// All sizes, ascending.
    pub(super) fn all_sizes(self) -> Vec<Size> {
        match self.range {
            Range::Quarters(low, high) => (4 * low..=4 * high).map(size_from_quarters).collect(),
            Range::Powers(low, high) => (low..=high).map(|power| size_from_quarters(4 * power)).collect(),
            Range::Few => self.default.iter().map(|power| size_from_quarters(4 * power)).collect(),
        }
    }

    /// Checks that this size is measured at the scale of `place`.
    ///
    /// # Errors
    /// The reason why it is skipped.
    pub(super) fn check_scale(self, size: &Size, place: &Place) -> Result<(), String> {
        let most = self.largest_bytes(last_level_cache_bytes(place.cpus.here.unwrap_or(0)));
        let is_chosen = size.power.is_some_and(|power| self.default.contains(&power));
        // At default scale, too, the curve of many sizes ends with the largest.
        let is_last = matches!(self.range, Range::Quarters(..)) && size.bytes == most;
        check_size(size.bytes, is_chosen || is_last, most, place)
    }

    /// The first size that is at least four times the last level of cache.
    fn largest_bytes(self, last_level: usize) -> usize {
        let all = self.all_sizes();
        let enough = all.iter().find(|size| size.bytes >= MEMORY.max(4 * last_level));
        enough.or(all.last()).map_or(MEMORY, |size| size.bytes)
    }
}

/// Checks that a size is at most `most`, and that the scale of `place` measures it.
fn check_size(bytes: usize, is_default: bool, most: usize, place: &Place) -> Result<(), String> {
    if bytes > most {
        return Err(format!(
            "beyond {} MiB, four times the last level of cache and more, it is all memory and nothing new is seen",
            most >> 20
        ));
    }
    match place.scale {
        Scale::Smoke if bytes > SMOKE => Err(format!(
            "smoke scale: rings of more than {} MiB are linked at default and full scale",
            SMOKE >> 20
        )),
        Scale::Smoke | Scale::Default if !is_default => {
            Err("default scale leaves it out between others: measured at full scale (`SYSCOST_SCALE=full`)"
                .into())
        }
        _ => Ok(()),
    }
}

/// The size of an exponent given in quarters. A size that is no power of two is rounded to whole lines, and to a name
/// of at least two figures.
fn size_from_quarters(quarters: u32) -> Size {
    let exact = f64::from(quarters) / 4.0;
    let power = (quarters % 4 == 0).then_some(quarters / 4);
    let unit = match power {
        Some(power) => 1 << (power / 10 * 10),
        None if exact < 14.0 => 64,
        None if exact < 24.0 => 1 << 10,
        None => 1 << 20,
    };
    let bytes = (exact.exp2() / unit as f64).round() as usize * unit;
    Size { name: size_text(bytes), bytes, power }
}

/// The size of the largest cache that the kernel reports of this CPU, bytes; 0 if it reports none.
fn last_level_cache_bytes(cpu: usize) -> usize {
    let sizes = (0..8).filter_map(|index| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/size");
        let kib = std::fs::read_to_string(path).ok()?;
        Some(kib.trim().strip_suffix('K')?.parse::<usize>().ok()? << 10)
    });
    sizes.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { range: Range::Quarters(10, 32), default: &[14, 18] };

    #[test]
    fn four_steps_double_the_size_and_every_name_is_unique() {
        let all = SIZES.all_sizes();
        let names: std::collections::BTreeSet<_> = all.iter().map(|size| size.name.as_str()).collect();
        assert_eq!((all.len(), names.len()), (89, 89));
        let few: Vec<_> = all.iter().take(5).map(|size| size.name.as_str()).collect();
        assert_eq!(few, ["1KiB", "1216B", "1472B", "1728B", "2KiB"]);
        for (size, step) in all.iter().zip(40..) {
            let ratio = size.bytes as f64 / (f64::from(step) / 4.0).exp2();
            assert!((0.97..1.03).contains(&ratio) && size.bytes % 64 == 0, "{size:?}");
        }
    }

    #[test]
    fn a_power_of_two_has_its_plain_name() {
        let powers = Sizes { range: Range::Powers(14, 30), default: &[] };
        let names: Vec<_> = powers.all_sizes().into_iter().map(|size| size.name).collect();
        assert_eq!((names[0].as_str(), names[4].as_str(), names[16].as_str()), ("16KiB", "256KiB", "1GiB"));
    }

    #[test]
    fn a_size_is_declined_with_its_reason() {
        let at = |scale| crate::kit::runnable::test_place(std::path::Path::new("/"), scale);
        let said = |bytes, default, scale, most| check_size(bytes, default, most, &at(scale)).err();
        let has = |sentence: Option<String>, words| sentence.is_some_and(|sentence| sentence.contains(words));
        assert_eq!(said(16 << 10, true, Scale::Smoke, MEMORY), None);
        assert!(has(said(64 << 20, true, Scale::Smoke, MEMORY), "smoke scale"));
        assert!(has(said(19 << 10, false, Scale::Default, MEMORY), "full scale"));
        assert!(has(said(512 << 20, false, Scale::Default, 1 << 30), "full scale"));
        assert_eq!(said(512 << 20, false, Scale::Full, 1 << 30), None);
        assert!(has(said(512 << 20, false, Scale::Full, MEMORY), "beyond 256 MiB"));
    }

    #[test]
    fn the_largest_ring_holds_the_last_level_four_times() {
        for (mib, largest) in [(0, 256), (32, 256), (105, 431), (260, 1218)] {
            let found = SIZES.largest_bytes(mib << 20) >> 20;
            assert!(found >= 4 * mib && found == largest, "{mib} MiB: {found}");
        }
        assert_eq!(Sizes { range: Range::Few, default: &[18] }.largest_bytes(32 << 20), 256 << 10);
    }
}
