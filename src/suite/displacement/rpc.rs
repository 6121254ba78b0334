//! A remote procedure call over TCP: the call and its reply are marshalled as Sun RPC does it (RFC 5531 and 4506), in its
//! smallest form: records of big-endian words, a program with procedures of a number each, no credentials.

use super::exchange::{connection_error, start_server, step_answer};
use super::local_case::check_slept;
use super::message_path::NetworkPath;
use crate::environment::Wire;
use crate::kit::contract::*;
use crate::kit::kernel_call::time_until_error;
use crate::platform::partner::Partner;
use std::io::{Read, Write};
use std::net::TcpStream;

/// The claim that is checked on every reply.
const CALLED: &str = "every reply carried the number of its call and the sum of its two arguments";

/// The only program of the server, from the range that is left to users.
const PROGRAM: u32 = 0x2000_0001;
/// The procedure that adds two numbers.
const ADD: u32 = 1;
/// Kinds of message.
const CALL: u32 = 0;
const REPLY: u32 = 1;
/// Results of a call.
const DONE: u32 = 0;
const NO_SUCH_PROGRAM: u32 = 1;
const NO_SUCH_PROCEDURE: u32 = 3;
/// The bit of a record's head that marks its last fragment. The other bits are the length of the fragment, bytes.
const LAST_FRAGMENT: u32 = 1 << 31;

/// Words of a call: number, kind, program, procedure, two arguments.
const CALL_WORDS: usize = 6;
/// Words of a reply: number, kind, result of the call, sum.
const REPLY_WORDS: usize = 4;
/// The reason for the predicted cost of a call, which is that of a small message and its reply.
const EXPECTED: &str = "a message of 28 bytes and one of 20, and marshalling, some ten instructions a word";

/// The case of one call over this path.
pub(super) fn call_case(path: NetworkPath) -> Case {
    let (hardware, software, _) = path.expected_cycles(1);
    let title = format!("a remote procedure call of two numbers by TCP, {}", path.title());
    Case::new(format!("rpc/{}", path.name()), title, set_up(move |place| Caller::start(path, place)))
        .need(PINNED)
        .need(TWO_CPUS)
        .need(path.need())
        .claim(Claim::Checked(CALLED))
        .claim(Claim::Regime(check_slept))
        .predict(hardware, software, EXPECTED)
}

/// Writes a record of these words.
#[inline(always)]
fn send_words<const N: usize>(mut stream: &TcpStream, words: [u32; N]) -> std::io::Result<()> {
    let mut record = [[0; 4]; CALL_WORDS + 1];
    record[0] = (LAST_FRAGMENT | (4 * N as u32)).to_be_bytes();
    for (bytes, word) in record[1..].iter_mut().zip(words) {
        *bytes = word.to_be_bytes();
    }
    stream.write_all(record[..=N].as_flattened())
}

/// Reads a record of `N` words.
///
/// # Errors
/// The errors of the connection, and `EBADMSG` for a record of another length.
#[inline(always)]
fn receive_words<const N: usize>(mut stream: &TcpStream) -> std::io::Result<[u32; N]> {
    let mut record = [[0; 4]; CALL_WORDS + 1];
    stream.read_exact(record[..=N].as_flattened_mut())?;
    if u32::from_be_bytes(record[0]) != LAST_FRAGMENT | (4 * N as u32) {
        return Err(std::io::Error::from_raw_os_error(libc::EBADMSG));
    }
    Ok(std::array::from_fn(|at| u32::from_be_bytes(record[1 + at])))
}

/// The server's step: one call and its reply. Allocates nothing.
fn serve_call(stream: &TcpStream) -> i64 {
    let served = receive_words::<CALL_WORDS>(stream).and_then(|call| send_words(stream, reply_to(call)));
    step_answer(served)
}

/// The reply to a call.
fn reply_to([number, _, program, procedure, one, other]: [u32; CALL_WORDS]) -> [u32; REPLY_WORDS] {
    let (result, sum) = match (program, procedure) {
        (PROGRAM, ADD) => (DONE, one.wrapping_add(other)),
        (PROGRAM, _) => (NO_SUCH_PROCEDURE, 0),
        _ => (NO_SUCH_PROGRAM, 0),
    };
    [number, REPLY, result, sum]
}

/// The measuring process as a client, with its server.
struct Caller {
    stream: TcpStream,
    server: Partner,
    wire: Option<Wire>,
    /// The number of the last call.
    number: u32,
}

impl Caller {
    fn start(path: NetworkPath, place: &Place) -> Result<Self> {
        let [stream, far] = path.connect()?;
        let server = start_server(place, move || serve_call(&far))?;
        let wire = path.wire(&stream);
        Ok(Self { stream, server, wire, number: 0 })
    }

    /// Calls a procedure. Returns the result of the call and the sum, and whether the reply was to this call.
    #[inline(always)]
    fn call(&mut self, procedure: u32, [one, other]: [u32; 2]) -> std::io::Result<([u32; 2], bool)> {
        self.number = self.number.wrapping_add(1);
        send_words(&self.stream, [self.number, CALL, PROGRAM, procedure, one, other])?;
        let [number, kind, result, sum] = receive_words(&self.stream)?;
        Ok(([result, sum], number == self.number && kind == REPLY))
    }

    /// One call whose reply is checked.
    ///
    /// # Errors
    /// [`Error::Disproved`] for a wrong reply or a server that has ended, [`Error::Disturbed`] for one that does not reply.
    #[inline(always)]
    fn add(&mut self) -> Result<()> {
        let arguments = [self.number, 0xffff_fff0];
        let right = [DONE, arguments[0].wrapping_add(arguments[1])];
        match self.call(ADD, arguments) {
            Ok((reply, true)) if reply == right => Ok(()),
            Ok((reply, own)) => Err(wrong_reply(reply, own)),
            Err(cause) => Err(connection_error(&mut self.server, "a remote procedure call", cause)),
        }
    }
}

#[cold]
fn wrong_reply([result, sum]: [u32; 2], own: bool) -> Error {
    let whose = if own { "this" } else { "another" };
    Error::Disproved(format!(
        "the reply to {whose} call had the result {result} and the sum {sum}, which is wrong"
    ))
}

impl Subject for Caller {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        time_until_error(iterations, clock, || self.add())
    }

    fn report(&self) -> Report {
        Report { partners: vec![self.server.task()], wire: self.wire.clone(), ..Report::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::test_place;
    use crate::platform::cpu;
    use crate::platform::testing::print_skipped;

    fn caller() -> Option<Caller> {
        if cpu::allowed_cpus().len() < 2 {
            print_skipped("there is one CPU");
            return None;
        }
        let place = test_place(&std::env::temp_dir(), Scale::Smoke);
        Some(Caller::start(NetworkPath::Loopback, &place).expect("a server"))
    }

    #[test]
    fn every_call_is_answered_by_its_sum() {
        let Some(mut caller) = caller() else { return };
        assert!(caller.run(300, &Clock::start_up()).expect("answered").0 > 0);
        assert_eq!(caller.call(ADD, [2, 3]).expect("answered"), ([DONE, 5], true));
        assert_eq!(caller.call(7, [2, 3]).expect("answered"), ([NO_SUCH_PROCEDURE, 0], true));
    }

    #[test]
    fn a_call_is_a_record_of_big_endian_words() {
        let [near, mut far] = NetworkPath::Loopback.connect().expect("connected");
        send_words(&near, [1, CALL, PROGRAM, ADD, 2, 0x0102_0304]).expect("sent");
        let mut sent = [0; 28];
        far.read_exact(&mut sent).expect("a head and six words");
        assert_eq!((&sent[..8], &sent[24..]), (&[0x80, 0, 0, 24, 0, 0, 0, 1][..], &[1, 2, 3, 4][..]));
    }

    #[test]
    fn another_program_or_a_record_of_another_length_is_refused() {
        assert_eq!(reply_to([9, CALL, 5, ADD, 2, 3]), [9, REPLY, NO_SUCH_PROGRAM, 0]);
        let [near, far] = NetworkPath::Loopback.connect().expect("connected");
        send_words(&near, [0; REPLY_WORDS]).expect("sent");
        send_words(&near, [0; REPLY_WORDS]).expect("sent");
        assert_eq!(serve_call(&far), -i64::from(libc::EBADMSG));
    }

    #[test]
    fn a_wrong_reply_is_an_error() {
        let right = wrong_reply([NO_SUCH_PROCEDURE, 0], true).to_string();
        assert!(right.contains("the reply to this call had the result 3"), "{right}");
        let Some(mut caller) = caller() else { return };
        // This call is not counted, so its reply arrives where that to the next one is expected.
        send_words(&caller.stream, [77, CALL, PROGRAM, ADD, 0, 0]).expect("sent");
        let error = caller.add().expect_err("not this one").to_string();
        assert!(error.contains("the reply to another call"), "{error}");
    }
}
