//! A matrix of CPUs in a terminal: a row and a column for each CPU, darker for a larger value.

use crate::record::Matrix;

/// From near to far.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// Up to this number of CPUs the map shows figures; beyond it only shades.
const WITH_FIGURES: usize = 16;

/// The lines of the map.
pub fn heat_map(matrix: &Matrix) -> Vec<String> {
    let all: Vec<f64> = matrix.rows.iter().flatten().copied().collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(0.0, f64::max);
    let shade = |ns: f64| {
        let share = (ns - low) / (high - low).max(f64::MIN_POSITIVE);
        SHADES[((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)]
    };
    let with_figures = matrix.cpus.len() <= WITH_FIGURES;
    let cell = |ns: &f64| match with_figures {
        true => format!("{ns:6.1}{}", shade(*ns)),
        false => shade(*ns).to_string(),
    };
    let row = |(cpu, row): (&usize, &Vec<f64>)| {
        let cells: String = row.iter().map(cell).collect();
        format!("CPU {cpu:>3} {cells}").trim_end().to_owned()
    };
    let mut lines: Vec<_> = matrix.cpus.iter().zip(&matrix.rows).map(row).collect();
    if with_figures {
        let heads: String =
            matrix.cpus.iter().take(lines.len().saturating_sub(1)).map(|cpu| format!("{cpu:>6} ")).collect();
        lines.insert(0, format!("        {heads}").trim_end().to_owned());
    }
    if low < high {
        lines.push(format!(
            "from `{}` {low:.1} ns to `{}` {high:.1} ns",
            SHADES[0],
            SHADES[SHADES.len() - 1]
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_far_is_darker_than_the_near() {
        let matrix = Matrix { cpus: vec![0, 1, 4], rows: vec![vec![], vec![20.0], vec![100.0, 60.0]] };
        let lines = heat_map(&matrix);
        assert_eq!(lines[0], "             0      1");
        assert_eq!(lines[2], "CPU   1   20.0");
        assert_eq!(lines[3], "CPU   4  100.0█  60.0▒");
        assert!(lines[4].contains("20.0 ns") && lines[4].contains("100.0 ns"));
    }

    #[test]
    fn many_cpus_have_a_character_each() {
        let rows = (0..40).map(|i| (0..i).map(|j| f64::from(i + j)).collect()).collect();
        let lines = heat_map(&Matrix { cpus: (0..40).collect(), rows });
        assert!(lines.iter().all(|line| line.chars().count() <= 8 + 40), "{lines:?}");
    }

    #[test]
    fn one_pair_is_a_map_too() {
        assert_eq!(heat_map(&Matrix { cpus: vec![0, 1], rows: vec![vec![], vec![50.0]] }).len(), 3);
    }
}
