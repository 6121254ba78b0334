//! The standard normal distribution, for samples that are too large for exact counting.

use std::f64::consts::SQRT_2;

/// The probability of a value above `z`, to the last digits of `erfc`.
pub(super) fn upper_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// The value below which a normal variable falls with `probability`: by bisection, until no number lies
/// between the two ends.
pub(super) fn quantile(probability: f64) -> f64 {
    bisect([-40.0, 40.0], |z| upper_tail(-z) < probability)
}

/// The place between these two where `is_below` ends to hold, to the last bit.
pub(super) fn bisect([mut low, mut high]: [f64; 2], is_below: impl Fn(f64) -> bool) -> f64 {
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if is_below(middle) { low = middle } else { high = middle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_agree_with_the_table() {
        // Abramowitz and Stegun, table 26.1 and 26.2.
        for (z, tail) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457_05),
            (2.0, 0.022_750_131_948_179_21),
            (5.0, 2.866_515_718_791_939e-7),
        ] {
            assert!((upper_tail(z) / tail - 1.0).abs() < 1e-12, "{z}: {}", upper_tail(z));
            assert!((upper_tail(-z) - (1.0 - tail)).abs() < 1e-14, "−{z}");
        }
    }

    #[test]
    fn a_quantile_undoes_a_tail() {
        assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
        for z in [-4.0, -1.5, 0.0, 0.3, 2.75] {
            assert!((quantile(upper_tail(-z)) - z).abs() < 1e-11, "{z}");
        }
    }
}
