//! What an operation found beside its time.

/// A figure that an operation found beside its time: what others did meanwhile, what the kernel held.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// What it is: `fairness`.
    pub name: &'static str,
    /// `/s`, `MiB`, or nothing for a ratio.
    pub unit: &'static str,
    /// What was found each time that it was looked at.
    pub values: Vec<f64>,
}

impl Found {
    /// A figure of these values.
    pub fn new(name: &'static str, unit: &'static str, values: Vec<f64>) -> Self {
        Self { name, unit, values }
    }
}
