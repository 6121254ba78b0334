//! The incomplete beta function, of which the binomial law and Student's t are special cases.

/// The regularised incomplete beta function Iₓ(a, b), for x within 0 and 1: on the side of its mean where the
/// continued fraction converges fast (Abramowitz and Stegun 26.5.8).
pub(super) fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    let front = a * x.ln() + b * (-x).ln_1p() + libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b);
    match x < (a + 1.0) / (a + b + 2.0) {
        true => front.exp() / a * continued_fraction(x, a, b),
        false => 1.0 - front.exp() / b * continued_fraction(1.0 - x, b, a),
    }
}

/// The continued fraction, by Lentz's method. It takes about √max(a, b) steps; libraries that stop after a fixed
/// number are wrong from some 10⁴ trials on.
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    let steps = 100 + 10 * a.max(b).sqrt() as u64;
    let away_from_zero = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in (1..=steps).map(|m| m as f64) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = value;
        for coefficient in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + coefficient * d);
            c = away_from_zero(1.0 + coefficient / c);
            value *= c * d;
        }
        if (value / before - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_first_parameter_has_a_closed_form() {
        for (x, a) in [(0.1_f64, 1.0), (0.5, 3.0), (0.99, 40.0)] {
            assert!((incomplete_beta(x, a, 1.0) / x.powf(a) - 1.0).abs() < 1e-13, "{x} {a}");
        }
    }

    #[test]
    fn half_is_the_middle_however_large_the_parameters_are() {
        for a in [0.5, 7.0, 5e3, 5e6] {
            // lnΓ of 10⁷ has eight digits before its point, which are lost to the difference.
            assert!((incomplete_beta(0.5, a, a) - 0.5).abs() < 1e-6, "{a}");
        }
    }
}
