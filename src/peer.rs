//! The other end of a wire: [`server`] is what `syscost peer` serves, [`client`] is what the socket groups
//! speak to it with.
//!
//! One TCP connection is the *control*: lines of JSON, each bounded. Both ends say hello with a fresh nonce, the
//! client proves that it has the token, the server proves the same, and only then is anything served. What is
//! measured goes over *data* sockets of their own, which the server opens for one client at a time: it takes
//! nothing there from another address, nor from who does not begin with the secret that the control was told.
//!
//! # What the token does and does not do
//! It keeps strangers from using the peer: without it nobody learns more than the protocol's version. It is proved once,
//! at the beginning: the lines after it and the data carry no proof of their own, and nothing is hidden, since nothing is
//! sent but the benchmark's own filling and what the two machines are. A proof on each line would not make the numbers
//! truer: who can hold packets back decides how long they take, whatever is signed. So, of those on the way,
//!
//! * who **listens** sees both machines' fingerprints, and may try tokens against the proofs that he heard: hence
//!   their least length, and those that are drawn have 256 bits;
//! * who **changes** packets, or stands between and passes the proofs on (such as who has the port of a peer that does
//!   not run), can take a conversation over after its beginning. He gets what an honest client gets, this machine's time
//!   within the [limits](service_limit)s, and can make numbers false. Where that matters, measure through a tunnel that is authenticated.
//!
//! Without a token, on loopback, everybody of this machine may use a peer, and may be one: of a machine whose users do
//! not trust each other, use one there too. A client gives a peer's word no more than it needs: its lines are bounded, its
//! texts shown without what moves a terminal, its counts compared with what was sent. It writes no file that a peer names,
//! and connects nowhere but to the address that it was given. A peer that lies consistently about what came cannot be told
//! from one that is fast.

pub mod client;
pub mod control_protocol;
pub mod json_line;
pub mod proof;
pub mod secret;
pub mod server;
pub mod service_limit;
mod station;
pub mod token;
