//! The other end of a wire: [`server`] is what `syscost peer` serves, [`client`] is what the socket groups
//! speak to it with.
//!
//! One TCP connection is the *control*: lines of JSON, each bounded. Both ends say hello with a fresh nonce, the
//! client proves that it has the token, the server proves the same, and only then is anything served. What is
//! measured goes over *data* sockets of their own, which the server opens for one client at a time: it takes
//! nothing there from another address, nor from who does not begin with the secret that the control was told.
//!
//! # What the token does and does not do
//! It keeps strangers from using the peer: without it nobody learns more than the protocol's version. It hides
//! nothing: what is sent is the benchmark's own filling. Who can change packets on the way can take over a
//! connection after its proof, and waste this machine's time within the [`limit`]s.

pub mod client;
pub mod limit;
pub mod line;
pub mod proof;
pub mod protocol;
pub mod server;
mod station;
pub mod token;
