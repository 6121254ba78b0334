//! The client of a peer. Every error names the peer.

use super::control_protocol::{
    Answer, Ask, Counted, DATA_PATIENCE, Hello, LONGEST, Open, PROOF_PATIENCE, READ_PATIENCE, Talk, VERSION,
};
use super::proof::{End, Nonces, Secret, Token, generate_nonce, parse_hex};
use super::station::sanitize_station;
use crate::environment::{Interface, Station, Wire};
use crate::error::{Error, Result, ensure};
use crate::json_line::{Lines, NoMessage};
use crate::platform::host_port::resolve_addresses;
use crate::platform::inert;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;

/// The variable with the address of the peer: `HOST:PORT`, or `HOST`.
pub const VARIABLE: &str = "SYSCOST_PEER";
/// The variable with the path of the token.
pub const TOKEN_VARIABLE: &str = "SYSCOST_PEER_TOKEN_FILE";

/// The peer to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Its address, as the user gave it.
    pub address: String,
    /// The file with its token.
    pub token: Option<PathBuf>,
}

impl Given {
    /// The peer that the environment names, if it names one.
    pub fn from_environment() -> Option<Self> {
        let given = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let address = given(VARIABLE)?.to_string_lossy().into_owned();
        Some(Self { address, token: given(TOKEN_VARIABLE).map(PathBuf::from) })
    }

    fn read_token(&self) -> Result<Token> {
        self.token.as_deref().map_or_else(|| Ok(Token::empty()), Token::read)
    }

    fn resolve_addresses(&self) -> Result<Vec<SocketAddr>> {
        resolve_addresses(&self.address).map_err(|why| Error::peer(&self.address, why))
    }
}

/// A connection to a peer.
pub struct Client {
    name: String,
    talk: Talk,
    address: SocketAddr,
    wire: Wire,
}

/// The data port of a service.
pub struct Way {
    /// Its address.
    pub address: SocketAddr,
    /// The secret with which every stream and every datagram begins.
    pub secret: Secret,
}

impl Client {
    /// Connects to a peer and authenticates both ends.
    ///
    /// # Errors
    /// [`Error::Peer`]: it cannot be reached, does not answer, has another version of the protocol, or one end does not
    /// have the token.
    pub fn connect(given: &Given) -> Result<Self> {
        let name = given.address.clone();
        let (token, addresses) = (given.read_token()?, given.resolve_addresses()?);
        let stream = connect_to_any(&name, &addresses)?;
        let broken = |cause| Error::peer(&name, NoMessage::Broken(cause).to_string());
        let (address, own) = (stream.peer_addr().map_err(broken)?, stream.local_addr().map_err(broken)?);
        let mut talk = Talk::from_stream(stream, Lines::new(LONGEST), READ_PATIENCE).map_err(broken)?;
        let (far, reached) = authenticate_peer(&name, &mut talk, &token)?;
        check_same_family(address, reached).map_err(|why| Error::peer(&name, why))?;
        let near = Interface::between_addresses(own.ip().to_canonical(), address.ip().to_canonical());
        Ok(Self { name, talk, address, wire: Wire { near, far, rate: None, reached: Some(reached) } })
    }

    /// The address of the peer, as the user gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interface to the peer, and its machine.
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// The address of the control.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The control itself, for tests of the protocol.
    pub fn stream(&self) -> &TcpStream {
        self.talk.stream()
    }

    /// Requests a service.
    ///
    /// # Errors
    /// As of [`count`](Self::count).
    pub fn open_service(&mut self, asked: Open) -> Result<Way> {
        self.send_request(&Ask::Open(asked))?;
        let Answer::Opened(opened) = self.receive()? else { return Err(self.wrong_answer_error()) };
        let secret = parse_hex(&opened.secret).ok_or_else(|| self.wrong_answer_error())?;
        let mut address = self.address;
        address.set_port(opened.port);
        Ok(Way { address, secret })
    }

    /// Requests a service and connects its data streams.
    ///
    /// # Errors
    /// As of [`count`](Self::count), or a data stream cannot be connected.
    pub fn open_streams(&mut self, asked: Open) -> Result<Vec<TcpStream>> {
        let way = self.open_service(asked)?;
        let streams = (0..asked.streams).map(|_| way.connect_stream()).collect::<std::io::Result<Vec<_>>>();
        let streams = streams.map_err(|cause| self.data_port_error(&way, &cause))?;
        self.wait_until_ready()?;
        Ok(streams)
    }

    /// Requests a service of datagrams and makes its socket.
    ///
    /// # Errors
    /// As of [`count`](Self::count), or the socket cannot be made.
    pub fn open_datagrams(&mut self, asked: Open) -> Result<(UdpSocket, Way)> {
        let way = self.open_service(asked)?;
        let local = if way.address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(local).and_then(|socket| {
            socket.connect(way.address)?;
            Ok(socket)
        });
        let socket = socket.map_err(|cause| self.data_port_error(&way, &cause))?;
        self.wait_until_ready()?;
        Ok((socket, way))
    }

    /// Waits until the peer has accepted all data sockets.
    ///
    /// # Errors
    /// As of [`count`](Self::count).
    pub fn wait_until_ready(&mut self) -> Result<()> {
        let answer = self.receive()?;
        ensure(matches!(answer, Answer::Ready), || self.wrong_answer_error())
    }

    /// Messages and bytes that the peer has served since the service was opened.
    ///
    /// # Errors
    /// [`Error::Peer`]: the peer does not answer, ends the connection, or sends another answer.
    pub fn request_counts(&mut self) -> Result<Counted> {
        self.send_request(&Ask::Count)?;
        let Answer::Counted(counted) = self.receive()? else { return Err(self.wrong_answer_error()) };
        Ok(counted)
    }

    /// The error of a broken data socket: the peer's own reason, if it has sent one.
    pub fn connection_error(&mut self, happened: &str) -> Error {
        let why = match self.talk.receive(DATA_PATIENCE / 10) {
            Ok(Answer::Ended(sentence)) => ended(&sentence),
            Err(NoMessage::Closed) => format!("{happened}: it has died, or was stopped"),
            _ => happened.to_owned(),
        };
        Error::peer(&self.name, why)
    }

    fn send_request(&mut self, ask: &Ask) -> Result<()> {
        self.talk.send(ask).map_err(|why| self.connection_error(&why.to_string()))
    }

    fn receive(&mut self) -> Result<Answer> {
        receive_answer(&self.name, &mut self.talk)
    }

    fn wrong_answer_error(&self) -> Error {
        Error::peer(&self.name, "it answered another question than it was asked")
    }

    fn data_port_error(&mut self, way: &Way, cause: &std::io::Error) -> Error {
        let port = way.address.port();
        self.connection_error(&format!(
            "its data port {port} cannot be reached: {cause}; a firewall may be between"
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

fn connect_to_any(name: &str, addresses: &[SocketAddr]) -> Result<TcpStream> {
    let mut last = None;
    for address in addresses {
        match TcpStream::connect_timeout(address, PROOF_PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(cause) => last = Some(cause),
        }
    }
    let cause = last.map_or_else(|| "it has no address".to_owned(), |cause| cause.to_string());
    Err(Error::peer(name, format!("it cannot be reached: {cause}; start `syscost peer` there")))
}

fn receive_answer(name: &str, talk: &mut Talk) -> Result<Answer> {
    let why = match talk.receive(READ_PATIENCE) {
        Ok(Answer::Ended(sentence)) => ended(&sentence),
        Ok(answer) => return Ok(answer),
        Err(NoMessage::Late) => format!("it has not answered for {} s", READ_PATIENCE.as_secs()),
        Err(why) => why.to_string(),
    };
    Err(Error::peer(name, why))
}

/// Checks that the peer was reached by the family of addresses by which it was called. Behind a translation of addresses
/// of one family it is reached at another than was called.
fn check_same_family(called: SocketAddr, reached: SocketAddr) -> std::result::Result<(), String> {
    let is_ipv4 = |address: SocketAddr| address.ip().to_canonical().is_ipv4();
    if is_ipv4(called) == is_ipv4(reached) {
        return Ok(());
    }
    let family = |address| if is_ipv4(address) { "IPv4" } else { "IPv6" };
    let (ours, theirs) = (family(called), family(reached));
    Err(format!(
        "it was called over {ours} at {called}, and says that it was reached over {theirs} at {reached}: something \
         between translates, and the numbers would be of neither; give an address of its own"
    ))
}

/// Exchanges hello, proof and welcome; the machine of the peer, and the address at which it says that it was reached.
fn authenticate_peer(name: &str, talk: &mut Talk, token: &Token) -> Result<(Station, SocketAddr)> {
    let said = |said: std::result::Result<(), NoMessage>| said.map_err(|e| Error::peer(name, e.to_string()));
    let wrong = |why: &str| Error::peer(name, why);
    let unexpected = |answer| wrong(&NoMessage::unexpected(&answer).to_string());
    let own = generate_nonce()?;
    said(talk.send(&Ask::Hello(Hello { version: VERSION, nonce: own.clone() })))?;
    let hello = match receive_answer(name, talk)? {
        Answer::Hello(hello) => hello,
        Answer::Refused => return Err(refusal_error(name)),
        other => return Err(unexpected(other)),
    };
    if hello.version != VERSION {
        return Err(wrong(&format!(
            "it speaks version {} of the protocol, and this syscost version {VERSION}: run the same syscost at both ends",
            hello.version
        )));
    }
    let nonces = Nonces::read(&own, &hello.nonce);
    let nonces = nonces.ok_or_else(|| unexpected(Answer::Hello(hello)))?;
    said(talk.send(&Ask::Proof(nonces.compute_proof(End::Client, token))))?;
    match receive_answer(name, talk)? {
        Answer::Welcome(welcome) if nonces.is_valid_proof(End::Server, token, &welcome.proof) => {
            let strange = || wrong("what it says of its machine is nothing that syscost says");
            Ok((sanitize_station(&welcome.station).ok_or_else(strange)?, welcome.reached))
        }
        Answer::Welcome(_) => {
            Err(wrong("it did not prove that it has the token: it is another peer than was meant"))
        }
        Answer::Refused => Err(refusal_error(name)),
        other => Err(unexpected(other)),
    }
}

fn refusal_error(name: &str) -> Error {
    Error::peer(name, "it refused us: give the token that it was started with by `--peer-token-file`")
}

/// What the peer said at its end, in printable form: of limited length and without control characters.
fn ended(sentence: &str) -> String {
    format!("it ended the conversation: {}", inert::neutralize_line(sentence, 300))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_the_other_family_is_another_way() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        assert_eq!(check_same_family(at("[fd00::1]:7470"), at("[fd00::2]:7470")), Ok(()));
        assert_eq!(check_same_family(at("127.0.0.1:1"), at("[::ffff:127.0.0.1]:1")), Ok(()));
        let why =
            check_same_family(at("[64:ff9b::c000:207]:7470"), at("192.0.2.7:7470")).expect_err("translated");
        assert!(
            why.contains("called over IPv6") && why.contains("reached over IPv4 at 192.0.2.7:7470"),
            "{why}"
        );
    }
}
