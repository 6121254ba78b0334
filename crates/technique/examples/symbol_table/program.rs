//! Random programs, with their expected output.

use std::fmt::Write;
use syscost_statistic::Random;

pub struct Program {
    pub text: String,
    pub prints: Vec<i64>,
}

struct Writer {
    random: Random,
    text: String,
    prints: Vec<i64>,
    /// Visible symbols with their values; a later symbol hides an earlier one of the same name.
    visible: Vec<(String, i64)>,
}

/// A program with this number of statements. The same seed gives the same program.
pub fn random(seed: u64, statements: usize) -> Program {
    let mut writer =
        Writer { random: Random::new(seed), text: String::new(), prints: Vec::new(), visible: Vec::new() };
    writer.statements(statements, 0);
    Program { text: writer.text, prints: writer.prints }
}

impl Writer {
    fn statements(&mut self, count: usize, depth: usize) {
        let mut left = count;
        while left > 0 {
            left -= 1;
            match self.random.number_below(10) {
                0 if depth < 4 && left > 4 => {
                    let inside = self.random.number_below(left.min(30)) + 1;
                    let outside = self.visible.len();
                    self.text.push_str("{\n");
                    self.statements(inside, depth + 1);
                    self.text.push_str("}\n");
                    self.visible.truncate(outside);
                    left -= inside;
                }
                1..=4 => self.declare(),
                5 => self.print(),
                _ if self.visible.is_empty() => self.declare(),
                _ => self.assign(),
            }
        }
    }

    fn declare(&mut self) {
        let name = format!("value_{}", self.random.number_below(500));
        let _ = write!(self.text, "let {name} = ");
        let value = self.expression(3);
        self.text.push_str(";\n");
        self.visible.push((name, value));
    }

    fn print(&mut self) {
        self.text.push_str("print ");
        let value = self.expression(3);
        self.text.push_str(";\n");
        self.prints.push(value);
    }

    fn assign(&mut self) {
        let name = self.visible[self.random.number_below(self.visible.len())].0.clone();
        let _ = write!(self.text, "{name} = ");
        let value = self.expression(3);
        self.text.push_str(";\n");
        if let Some((_, old)) = self.visible.iter_mut().rfind(|(visible, _)| *visible == name) {
            *old = value;
        }
    }

    /// Writes an expression in brackets and returns its value.
    fn expression(&mut self, depth: usize) -> i64 {
        let kind = if depth == 0 { 2 + self.random.number_below(3) } else { self.random.number_below(6) };
        match kind {
            0 | 1 | 5 => {
                self.text.push('(');
                let left = self.expression(depth - 1);
                let sign = self.random.number_below(3);
                self.text.push_str([" + ", " - ", " * "][sign]);
                let right = self.expression(depth - 1);
                self.text.push(')');
                [left.wrapping_add(right), left.wrapping_sub(right), left.wrapping_mul(right)][sign]
            }
            2 => {
                let number = self.random.number_below(1000) as i64;
                let _ = write!(self.text, "{number}");
                number
            }
            _ if self.visible.is_empty() => {
                self.text.push('7');
                7
            }
            _ => {
                let name = self.visible[self.random.number_below(self.visible.len())].0.clone();
                self.text.push_str(&name);
                // The innermost symbol of this name.
                self.visible.iter().rfind(|(visible, _)| *visible == name).map_or(0, |(_, value)| *value)
            }
        }
    }
}
