//! The standard normal law, for the sample sizes where exact counting would cost more than it tells.

use std::f64::consts::PI;

/// The probability of a value above `z`, to about 1e-15 (relative to 1e-12 from three deviations on).
///
/// Near the middle by Marsaglia's series (*Evaluating the Normal Distribution*, 2004), in the tail by
/// Laplace's continued fraction of Mills' ratio (Abramowitz and Stegun 26.2.14).
pub(super) fn upper_tail(z: f64) -> f64 {
    match z {
        _ if z < 0.0 => 1.0 - upper_tail(-z),
        _ if z < 3.0 => 0.5 - density(z) * series(z),
        _ => density(z) / mills_denominator(z),
    }
}

/// The value below which a normal variable falls with `probability`: by bisection, until no number lies
/// between the two ends.
pub(super) fn quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if upper_tail(-middle) < probability { low = middle } else { high = middle }
    }
}

fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// z + z³/3 + z⁵/(3·5) + …, until a term adds nothing.
fn series(z: f64) -> f64 {
    let (mut sum, mut term, mut odd) = (z, z, 1.0);
    while term > sum * f64::EPSILON / 4.0 {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    sum
}

/// z + 1/(z + 2/(z + 3/(z + …))), from the inside out; at z = 3 some seventy steps settle it.
fn mills_denominator(z: f64) -> f64 {
    (1..=120).rev().fold(z, |inner, k| z + f64::from(k) / inner)
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
    fn series_and_fraction_meet() {
        let (below, above) = (upper_tail(3.0_f64.next_down()), upper_tail(3.0));
        assert!((below / above - 1.0).abs() < 1e-12, "{below} {above}");
    }

    #[test]
    fn a_quantile_undoes_a_tail() {
        assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
        for z in [-4.0, -1.5, 0.0, 0.3, 2.75] {
            assert!((quantile(upper_tail(-z)) - z).abs() < 1e-11, "{z}");
        }
    }
}
