//! The client of a peer. Every error names the peer.

use super::carrier::Carrier;
use super::control_protocol::{
    Answer, Ask, Counted, DATA_PATIENCE, Open, READ_PATIENCE, START_PATIENCE, VERSION,
};
pub use super::secret::Secret;
use super::station::sanitize_station;
use crate::environment::{Interface, Wire};
use crate::error::{Error, Result, ensure};
use crate::platform::host_address::resolve_host;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};

/// The variable with the address of the peer.
pub const VARIABLE: &str = "SYSCOST_PEER";
/// The variable with the shell command that starts the peer.
pub const COMMAND_VARIABLE: &str = "SYSCOST_PEER_COMMAND";

/// The peer to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Its address, as the user gave it.
    pub address: String,
    /// The shell words that start it; `None` for ssh to the address.
    pub command: Option<String>,
}

impl Given {
    /// The peer that the environment names, if it names one.
    pub fn from_environment() -> Option<Self> {
        let given = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Some(Self { address: given(VARIABLE)?, command: given(COMMAND_VARIABLE) })
    }
}

/// A connection to a peer.
pub struct Client {
    carrier: Carrier,
    /// The address of the peer. Its port belongs to no socket and is not used.
    address: SocketAddr,
    wire: Wire,
}

/// How to reach the data port of a service.
pub struct Way {
    /// The address and port.
    pub address: SocketAddr,
    /// The secret with which every stream and every datagram begins.
    pub secret: Secret,
}

impl Client {
    /// Starts a peer, and connects to it.
    ///
    /// # Errors
    /// [`Error::Peer`]: its command cannot be started or does not answer, it has another version of the protocol, or its
    /// address cannot be reached.
    pub fn connect(given: &Given) -> Result<Self> {
        let addresses = resolve_host(&given.address).map_err(|why| Error::peer(&given.address, why))?;
        let carrier = Carrier::start(given)?;
        let mut client = Self { carrier, address: addresses[0], wire: Wire::default() };
        client.check_version()?;
        client.meet(&addresses)?;
        Ok(client)
    }

    fn check_version(&mut self) -> Result<()> {
        let Answer::Hello(hello) = self.carrier.receive(START_PATIENCE)? else {
            return Err(self.wrong_answer_error());
        };
        ensure(hello.version == VERSION, || {
            self.carrier.error(&format!(
                "it speaks version {} of the protocol, and this syscost version {VERSION}: run the same syscost at both ends",
                hello.version
            ))
        })
    }

    /// Connects the first data stream, by which both ends learn their addresses.
    fn meet(&mut self, addresses: &[SocketAddr]) -> Result<()> {
        let mut way = self.receive_way()?;
        let port = way.address.port();
        let mut failure = None;
        let mut connect = |address: &SocketAddr| {
            (self.address, way.address) = (*address, *address);
            way.address.set_port(port);
            way.connect_stream().map_err(|cause| failure = Some(cause)).ok()
        };
        let Some(stream) = addresses.iter().find_map(&mut connect) else {
            let cause = failure.map_or_else(String::new, |cause| cause.to_string());
            return Err(self.data_port_error(&way, &cause));
        };
        self.wait_until_ready()?;
        let Answer::Welcome(welcome) = self.receive()? else { return Err(self.wrong_answer_error()) };
        let wrong = |why: String| Error::peer(self.carrier.name(), why);
        check_same_family(self.address, welcome.reached).map_err(wrong)?;
        let far = sanitize_station(&welcome.station)
            .ok_or_else(|| wrong("what it says of its machine is nothing that syscost says".into()))?;
        let own = stream.local_addr().map_err(|cause| wrong(cause.to_string()))?;
        let near = Interface::between_addresses(own.ip().to_canonical(), self.address.ip().to_canonical());
        self.wire = Wire { near, far, rate: None, reached: Some(welcome.reached) };
        Ok(())
    }

    /// The address of the peer, as the user gave it.
    pub fn name(&self) -> &str {
        self.carrier.name()
    }

    /// The interface to the peer, and its machine.
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// The address at which the peer is reached; its port means nothing.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests a service.
    ///
    /// # Errors
    /// As of [`request_counts`](Self::request_counts).
    pub fn open_service(&mut self, asked: Open) -> Result<Way> {
        self.send_request(&Ask::Open(asked))?;
        self.receive_way()
    }

    fn receive_way(&mut self) -> Result<Way> {
        let Answer::Opened(opened) = self.receive()? else { return Err(self.wrong_answer_error()) };
        let mut address = self.address;
        address.set_port(opened.port);
        Ok(Way { address, secret: opened.secret })
    }

    /// Requests a service and connects its data streams.
    ///
    /// # Errors
    /// As of [`request_counts`](Self::request_counts), or a data stream cannot be connected.
    pub fn open_streams(&mut self, asked: Open) -> Result<Vec<TcpStream>> {
        let way = self.open_service(asked)?;
        let streams = (0..asked.streams).map(|_| way.connect_stream()).collect::<std::io::Result<Vec<_>>>();
        let streams = streams.map_err(|cause| self.data_port_error(&way, &cause.to_string()))?;
        self.wait_until_ready()?;
        Ok(streams)
    }

    /// Requests a service of datagrams and makes its socket.
    ///
    /// # Errors
    /// As of [`request_counts`](Self::request_counts), or the socket cannot be made.
    pub fn open_datagrams(&mut self, asked: Open) -> Result<(UdpSocket, Way)> {
        let way = self.open_service(asked)?;
        let local = if way.address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(local).and_then(|socket| {
            socket.connect(way.address)?;
            Ok(socket)
        });
        let socket = socket.map_err(|cause| self.data_port_error(&way, &cause.to_string()))?;
        self.wait_until_ready()?;
        Ok((socket, way))
    }

    /// Waits until the peer has accepted all data sockets.
    ///
    /// # Errors
    /// As of [`request_counts`](Self::request_counts).
    pub fn wait_until_ready(&mut self) -> Result<()> {
        let answer = self.receive()?;
        ensure(matches!(answer, Answer::Ready), || self.wrong_answer_error())
    }

    /// Messages and bytes that the peer has served since the service was opened.
    ///
    /// # Errors
    /// [`Error::Peer`]: the peer does not answer, ends the conversation, or sends another answer.
    pub fn request_counts(&mut self) -> Result<Counted> {
        self.send_request(&Ask::Count)?;
        let Answer::Counted(counted) = self.receive()? else { return Err(self.wrong_answer_error()) };
        Ok(counted)
    }

    /// The error of a broken data socket: the peer's own reason, if it has sent one.
    pub fn connection_error(&mut self, happened: &str) -> Error {
        self.carrier.data_error(happened)
    }

    fn send_request(&mut self, ask: &Ask) -> Result<()> {
        let is_sent = self.carrier.send_request(ask);
        ensure(is_sent, || self.connection_error("it takes no request"))
    }

    fn receive(&mut self) -> Result<Answer> {
        self.carrier.receive(READ_PATIENCE)
    }

    fn wrong_answer_error(&self) -> Error {
        Error::peer(self.name(), "it answered another question than it was asked")
    }

    fn data_port_error(&mut self, way: &Way, cause: &str) -> Error {
        let address = way.address;
        self.connection_error(&format!(
            "its data port at {address} cannot be reached: {cause}; a firewall may be between, or `--peer` names another machine than \
             the command"
        ))
    }
}

impl Way {
    /// Connects a data stream and sends the secret.
    ///
    /// # Errors
    /// That of the socket.
    pub fn connect_stream(&self) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&self.address, DATA_PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.write_all(&self.secret)?;
        Ok(stream)
    }
}

/// Checks that the address that was called and the one that was reached are of the same family (IPv4 or IPv6). A translation
/// within one family may change the address itself.
fn check_same_family(called: SocketAddr, reached: SocketAddr) -> std::result::Result<(), String> {
    let (called, reached) = (called.ip().to_canonical(), reached.ip().to_canonical());
    if called.is_ipv4() == reached.is_ipv4() {
        return Ok(());
    }
    let (ours, theirs) = if called.is_ipv4() { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
    Err(format!(
        "it was called over {ours} at {called}, and says that it was reached over {theirs} at {reached}: something \
         between translates, and the numbers would be of neither; give an address of its own"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_the_other_family_is_another_way() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        assert_eq!(check_same_family(at("[fd00::1]:0"), at("[fd00::2]:0")), Ok(()));
        assert_eq!(check_same_family(at("127.0.0.1:1"), at("[::ffff:127.0.0.1]:1")), Ok(()));
        let why = check_same_family(at("[64:ff9b::c000:207]:0"), at("192.0.2.7:0")).expect_err("translated");
        assert!(why.contains("called over IPv6") && why.contains("reached over IPv4 at 192.0.2.7"), "{why}");
    }
}
