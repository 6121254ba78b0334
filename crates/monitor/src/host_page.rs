//! The page of another machine's monitor, which is fetched by HTTP and parsed.
//!
//! The other machine is not trusted: time and length are limited, and a page with an invalid line is refused.

use super::http_server::METRICS;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The longest page, bytes: 1000 CPUs take a tenth of it.
const LONGEST: u64 = 4 << 20;

/// The samples of a monitor's page at one moment.
#[derive(Clone, Debug)]
pub struct HostPage {
    /// The time of the request.
    pub at: Instant,
    samples: Vec<Sample>,
}

#[derive(Clone, Debug, PartialEq)]
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

impl HostPage {
    /// Requests the page of the monitor at this address. The error is a sentence.
    ///
    /// # Errors
    /// An error where the monitor does not answer within `patience`, or answers with something other than a page of samples.
    pub fn fetch(from: SocketAddr, patience: Duration) -> Result<Self, String> {
        let at = Instant::now();
        Ok(Self { at, ..Self::parse(&fetch_body(from, METRICS, patience)?)? })
    }

    /// Parses the text of a page, as if requested now.
    pub(crate) fn parse(body: &str) -> Result<Self, String> {
        Ok(Self { at: Instant::now(), samples: parse_samples(body)? })
    }

    /// The sum of the samples of this name whose label `key` fulfils `is_meant`.
    pub fn sum_where_label(&self, name: &str, key: &str, is_meant: impl Fn(&str) -> bool) -> Option<f64> {
        let of_name = self.samples.iter().filter(|sample| sample.name == name);
        let meant = of_name.filter(|sample| is_meant(&label_value(sample, key)));
        meant.map(|sample| sample.value).reduce(|sum, value| sum + value)
    }

    /// The sum of all samples of this name, of which most names have only one.
    pub fn sum_by_name(&self, name: &str) -> Option<f64> {
        self.sum_where_label(name, "", |_| true)
    }

    /// Splits the samples of this name by the label `key`. Each value of the label gets a page with its samples.
    pub fn split_by_label(&self, name: &str, key: &str) -> Vec<(String, Self)> {
        let mut parts: Vec<(String, Self)> = Vec::new();
        for sample in self.samples.iter().filter(|sample| sample.name == name) {
            let value = label_value(sample, key);
            match parts.iter_mut().find(|(known, _)| *known == value) {
                Some((_, part)) => part.samples.push(sample.clone()),
                None => parts.push((value, Self { at: self.at, samples: vec![sample.clone()] })),
            }
        }
        parts
    }

    /// The value of the label `key` of the first sample of this name.
    pub fn first_label(&self, name: &str, key: &str) -> Option<String> {
        self.samples.iter().find(|sample| sample.name == name).map(|sample| label_value(sample, key))
    }
}

fn label_value(sample: &Sample, key: &str) -> String {
    sample.labels.iter().find(|(its, _)| its == key).map_or(String::new(), |(_, text)| text.clone())
}

/// Requests a path from the monitor at this address, and returns the body of the answer.
///
/// # Errors
/// The errors of [`HostPage::fetch`], as a sentence.
pub fn fetch_body(from: SocketAddr, path: &str, patience: Duration) -> Result<String, String> {
    let answer = fetch_answer(from, path, patience).map_err(|e| match e.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => "it does not answer".to_owned(),
        _ => e.to_string(),
    })?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("it does not speak HTTP")?;
    let status = head.split_ascii_whitespace().nth(1).unwrap_or_default();
    match status {
        "200" => Ok(body.to_owned()),
        _ => Err(format!("it answers with status {status}: {}", body.lines().next().unwrap_or_default())),
    }
}

fn fetch_answer(from: SocketAddr, path: &str, patience: Duration) -> std::io::Result<String> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect_timeout(&from, patience)?;
    stream.set_write_timeout(Some(patience))?;
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: {from}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let (mut bytes, mut part) = (Vec::new(), [0; 16 << 10]);
    loop {
        // A limit per read would not suffice: a monitor that sends single bytes must count as one that does not answer.
        let left = patience.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => break,
            length => bytes.extend_from_slice(&part[..length]),
        }
        if bytes.len() as u64 > LONGEST {
            return Err(std::io::Error::other(format!("its page is longer than {} MiB", LONGEST >> 20)));
        }
    }
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("its page is no text"))
}

fn parse_samples(body: &str) -> Result<Vec<Sample>, String> {
    let lines = body.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| parse_sample(line).ok_or_else(|| "its page is none of a monitor's".to_owned())).collect()
}

/// Parses a line such as `name{key="text"} 1.5`.
fn parse_sample(line: &str) -> Option<Sample> {
    let (series, value) = line.rsplit_once(' ')?;
    let value = value.parse().ok()?;
    let Some((name, rest)) = series.split_once('{') else {
        return Some(Sample { name: series.into(), labels: Vec::new(), value });
    };
    let labels = parse_labels(rest.strip_suffix('}')?)?;
    Some(Sample { name: name.into(), labels, value })
}

/// Parses pairs `key="text"`, separated by commas; a backslash escapes the character after it.
fn parse_labels(mut rest: &str) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (key, after) = rest.split_once("=\"")?;
        let (mut text, mut end, mut is_escaped) = (String::new(), None, false);
        for (at, character) in after.char_indices() {
            match character {
                _ if is_escaped => {
                    text.push(if character == 'n' { '\n' } else { character });
                    is_escaped = false;
                }
                '\\' => is_escaped = true,
                '"' => {
                    end = Some(at + 1);
                    break;
                }
                _ => text.push(character),
            }
        }
        found.push((key.to_owned(), text));
        rest = after.get(end?..)?;
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    Some(found)
}

#[cfg(test)]
mod tests;
