//! The far end of a network connection: [`server`] is what `syscost peer` runs, [`client`] is what the socket groups
//! use.
//!
//! The *control* is the standard input and output of a command that the client starts, by default `ssh HOST syscost peer`:
//! lines of JSON of limited length. Measured traffic uses separate *data* sockets, which the server opens for one client
//! at a time. The server accepts them only if they begin with the secret that it sent over the control, and only from the
//! client's address. It learns that address from the first data stream, which is accepted from anywhere.
//!
//! # What is trusted
//! Every user that may start the command may use the peer: ssh, the container runtime or the kernel decides. Data is neither
//! authenticated nor encrypted. It contains only bytes that the benchmark makes up. An attacker on the path can falsify numbers,
//! and could do so with encrypted data too, since delaying packets decides how long they take.
//!
//! A client trusts a peer as little as possible: lines have a limited length, texts are shown without control characters, and
//! counts are compared with what was sent. It writes no file that a peer names, and connects only to the address that it was
//! given. A peer that lies consistently about what it received cannot be distinguished from a fast one.

mod carrier;
pub mod client;
pub mod control_protocol;
mod secret;
pub mod server;
mod station;
