//! The statistics of the verdicts for another program: a JSON question on each line of standard input, an answer on
//! each line of standard output. `experiments/against-scipy` compares them with SciPy,
//! `experiments/against-statsmodels` compares random effects with statsmodels.
//!
//!     echo '{"kind": "proportion", "successes": 0, "of": 185}' | cargo run -q --example statistic

use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{self, BufRead, Write};
use syscost_statistic::{self as statistic, Alternative, Effect};

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Question {
    SignedRank { differences: Vec<f64>, shift: f64, alternative: Direction },
    HodgesLehmann { differences: Vec<f64>, confidence: f64 },
    Equivalence { differences: Vec<f64>, margin: f64 },
    Discovery { p: Vec<f64>, q: f64 },
    Proportion { successes: u64, of: u64 },
    Change { old: Vec<f64>, new: Vec<f64>, resamples: usize, seed: u64 },
    MinimumDetectable { differences: Vec<f64>, pairs: usize },
    RandomEffects { effects: Vec<(f64, f64)> },
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Direction {
    Greater,
    Less,
}

impl From<Direction> for Alternative {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Greater => Self::Greater,
            Direction::Less => Self::Less,
        }
    }
}

fn answer(question: Question) -> Value {
    match question {
        Question::SignedRank { differences, shift, alternative } => {
            json!(statistic::signed_rank_p(&differences, shift, alternative.into()))
        }
        Question::HodgesLehmann { differences, confidence } => {
            json!(statistic::hodges_lehmann(&differences, confidence))
        }
        Question::Equivalence { differences, margin } => {
            json!(statistic::equivalence_p(&differences, margin))
        }
        Question::Discovery { p, q } => json!({
            "adjusted": statistic::adjusted_p_values(&p),
            "rejected": statistic::benjamini_hochberg(&p, q),
        }),
        Question::Proportion { successes, of } => json!(statistic::proportion_interval(successes, of)),
        Question::Change { old, new, resamples, seed } => {
            json!(format!("{:?}", statistic::change_between(&old, &new, resamples, seed)))
        }
        Question::MinimumDetectable { differences, pairs } => {
            json!(statistic::minimum_detectable_shift(&differences, pairs))
        }
        Question::RandomEffects { effects } => {
            let effects = effects.iter().map(|&(estimate, variance)| Effect { estimate, variance });
            let found = statistic::random_effects(&effects.collect::<Vec<_>>());
            json!(found.map(|f| [f.mean.estimate, f.mean.low, f.mean.high, f.error, f.between]))
        }
    }
}

fn main() -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let question = serde_json::from_str(&line?)?;
        writeln!(output, "{}", answer(question))?;
    }
    Ok(())
}
