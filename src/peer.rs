//! The far end of a network connection: [`server`] is what `syscost peer` runs, [`client`] is what the socket groups
//! use.
//!
//! One TCP connection is the *control*: lines of JSON of limited length. Both ends send a hello with a fresh nonce, the
//! client proves that it has the token, the server proves the same, and only then is anything served. Measured traffic
//! uses separate *data* sockets, which the server opens for one client at a time. The server accepts them only from the
//! client's address, and only if they begin with the secret that it sent over the control.
//!
//! # What the token protects
//! Without the token a stranger cannot use the peer and learns only the version of the protocol. It is proved once, at
//! the beginning: later lines and data are neither authenticated nor encrypted. They contain only the benchmark's
//! filling and the two fingerprints. Authenticating each line would not make the numbers more trustworthy: an attacker
//! that can delay packets decides how long they take. So an attacker on the path that
//!
//! * **listens** sees the fingerprints of both machines and can test tokens against the proofs offline: hence their
//!   minimum length; a generated token has 256 bits;
//! * **changes** packets, or relays the proofs (such as a process on the port of a peer that does not run), can take
//!   over the conversation after its beginning. He gets what an honest client gets, time of this machine within the
//!   [limits](control_protocol::Limits), and can falsify numbers. Where that matters, measure through an authenticated tunnel.
//!
//! Without a token, on the loopback interface, every user of the machine can use a peer and can pretend to be one:
//! where users do not trust each other, use a token there too. A client trusts a peer as little as possible: lines have
//! a limited length, texts are shown without control characters, and counts are compared with what was sent. It writes
//! no file that a peer names, and connects only to the address that it was given. A peer that lies consistently about
//! what it received cannot be distinguished from a fast one.

pub mod client;
pub mod control_protocol;
pub mod proof;
pub mod server;
mod station;
