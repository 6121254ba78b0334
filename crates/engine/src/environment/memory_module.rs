//! The memory modules of the machine, from the tables of the system management BIOS (DMTF DSP0134, *Memory Device*, type
//! 17), which the kernel shows to root. Of the texts in them only channel labels are used: others may be serial numbers.

use std::collections::BTreeSet;
use std::path::Path;

/// The file that holds the tables.
pub const TABLE: &str = "/sys/firmware/dmi/tables/DMI";
const MEMORY_DEVICE: u8 = 17;
const END: u8 = 127;

/// A slot that holds a module.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Module {
    /// Its size with the unit.
    size: String,
    /// `DDR5`, or `memory` where the kind has no usual name.
    kind: &'static str,
    /// Bits of one transfer, without error-correcting bits.
    bits: Option<u16>,
    /// Transfers per microsecond, as configured.
    speed: Option<u32>,
    /// The channel, if the label names one.
    channel: Option<String>,
}

/// The greatest bandwidth of all channels together, bytes per second, and a sentence about it.
///
/// # Errors
/// A sentence on why the bandwidth is unknown: a guest has no such table, or only root can read it.
pub fn bandwidth_limit() -> Result<(f64, String), String> {
    match std::fs::read(TABLE) {
        Ok(bytes) => limit_from_table(&bytes),
        Err(_) if !Path::new(TABLE).exists() => Err(format!(
            "the machine does not tell the speed of its memory ({TABLE} is not there, as in most guests)"
        )),
        Err(error) => {
            Err(format!("the speed of the memory is not known ({TABLE}: {error}): run as root to have it"))
        }
    }
}

/// A text for each module: `16384 MiB DDR4 at 3200 MT/s`.
pub fn describe_modules(table: &[u8]) -> impl Iterator<Item = String> {
    let speed = |speed: u32| format!(" at {speed} MT/s");
    let text = move |Module { size, kind, speed: known, .. }: Module| {
        format!("{size} {kind}{}", known.map_or(String::new(), speed))
    };
    parse_modules(table).into_iter().map(text)
}

fn limit_from_table(bytes: &[u8]) -> Result<(f64, String), String> {
    let mut modules = parse_modules(bytes);
    modules.retain(|module| module.speed.is_some() && module.bits.is_some());
    let slowest = modules.iter().filter_map(|module| module.speed).min();
    let Some(speed) = slowest else {
        return Err(format!("{TABLE} names no memory module with its speed"));
    };
    // Modules of one channel share its bandwidth. A module whose label names no channel counts as a channel.
    let named: BTreeSet<_> = modules.iter().filter_map(|module| module.channel.as_ref()).collect();
    let unnamed = modules.iter().filter(|module| module.channel.is_none()).count();
    let channels = named.len() + unnamed;
    let bits = modules.iter().filter_map(|module| module.bits).min().unwrap_or(64);
    let limit = channels as f64 * f64::from(speed) * 1e6 * f64::from(bits) / 8.0;
    let words = format!(
        "{channels} channels of {bits} bits at {speed} MT/s could hand over {:.1} GB/s at most",
        limit / 1e9
    );
    Ok((limit, words))
}

/// The modules in filled slots. The table is a sequence of structures: each has a head with its type and length,
/// then fields, then texts, of which the last is empty.
fn parse_modules(mut bytes: &[u8]) -> Vec<Module> {
    let mut found = Vec::new();
    while let [kind, length, ..] = *bytes {
        let length = usize::from(length);
        let Some(fields) = bytes.get(..length).filter(|_| length >= 4) else { break };
        let texts = &bytes[length..];
        let Some(end) = texts.windows(2).position(|pair| pair == [0, 0]) else { break };
        if kind == MEMORY_DEVICE {
            found.extend(parse_module(fields, &texts[..end]));
        }
        if kind == END {
            break;
        }
        bytes = &texts[end + 2..];
    }
    found
}

fn parse_module(fields: &[u8], texts: &[u8]) -> Option<Module> {
    let word = |at: usize| fields.get(at..at + 2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let long = |at: usize| {
        let bytes = fields.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let size = match word(0x0c)? {
        // An empty slot.
        0 => return None,
        0xffff => "size unknown:".to_owned(),
        // The size is in a longer field.
        0x7fff => format!("{} MiB", long(0x1c)? & 0x7fff_ffff),
        kib if kib & 0x8000 != 0 => format!("{} KiB", kib & 0x7fff),
        mib => format!("{mib} MiB"),
    };
    // 0xffff means that the speed is in a longer field.
    let speed = |short: usize, extended: usize| match word(short)? {
        0 => None,
        0xffff => long(extended).filter(|speed| *speed > 0),
        speed => Some(u32::from(speed)),
    };
    let speed = speed(0x20, 0x58).or_else(|| speed(0x15, 0x54));
    let bits = word(0x0a).filter(|bits| (1..=512).contains(bits));
    let text = |at: usize| {
        let number = usize::from(*fields.get(at)?).checked_sub(1)?;
        let text = texts.split(|byte| *byte == 0).nth(number)?;
        Some(String::from_utf8_lossy(text).to_lowercase())
    };
    let channel = [0x11, 0x10].into_iter().filter_map(text).find_map(|label| channel_in_label(&label));
    Some(Module { size, kind: kind_name(*fields.get(0x12)?), bits, speed, channel })
}

fn kind_name(code: u8) -> &'static str {
    match code {
        0x12 => "DDR",
        0x13 => "DDR2",
        0x18 => "DDR3",
        0x1a => "DDR4",
        0x1d => "LPDDR3",
        0x1e => "LPDDR4",
        0x20 => "HBM",
        0x21 => "HBM2",
        0x22 => "DDR5",
        0x23 => "LPDDR5",
        _ => "memory",
    }
}

/// The part of a label that names the channel: all of `P0 CHANNEL A`, the first part of `ChannelA-DIMM0`.
fn channel_in_label(label: &str) -> Option<String> {
    let from = label.find("channel")?;
    let name = label[from + "channel".len()..].trim_start();
    let name: String = name.chars().take_while(char::is_ascii_alphanumeric).collect();
    (!name.is_empty()).then(|| format!("{}{name}", &label[..from]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The structure of a memory device.
    fn device(size: u16, speed: u16, configured: u16, bank: &str) -> Vec<u8> {
        let mut fields = vec![0u8; 0x5c];
        (fields[0], fields[1]) = (MEMORY_DEVICE, 0x5c);
        let mut put = |at: usize, value: u16| fields[at..at + 2].copy_from_slice(&value.to_le_bytes());
        put(0x08, 72);
        put(0x0a, 64);
        put(0x0c, size);
        put(0x15, speed);
        put(0x20, configured);
        put(0x58, 8800);
        (fields[0x10], fields[0x11]) = (1, 2);
        fields.extend(b"DIMM 0\0");
        fields.extend(bank.as_bytes());
        fields.extend(b"\0\0");
        fields
    }

    #[test]
    fn channels_are_counted_once_and_empty_slots_not_at_all() {
        let table = [
            device(16384, 5600, 4800, "P0 CHANNEL A"),
            device(16384, 5600, 4800, "P0 CHANNEL A"),
            device(16384, 5600, 4800, "P0 CHANNEL B"),
            device(0, 0, 0, "P0 CHANNEL C"),
        ];
        let (limit, words) = limit_from_table(&table.concat()).expect("modules");
        assert_eq!(limit, 2.0 * 4800e6 * 8.0, "{words}");
        assert!(words.contains("2 channels of 64 bits at 4800 MT/s"), "{words}");
    }

    #[test]
    fn a_module_without_a_channel_name_counts_as_a_channel_and_long_speeds_are_read() {
        let table = [device(1, 0, 0xffff, "BANK 0"), device(1, 0, 0xffff, "BANK 1")].concat();
        let (limit, _) = limit_from_table(&table).expect("modules");
        assert_eq!(limit, 2.0 * 8800e6 * 8.0);
        assert_eq!(channel_in_label("channela-dimm0").as_deref(), Some("a"));
    }

    #[test]
    fn a_module_is_described_by_size_kind_and_speed_without_its_texts() {
        let mut large = device(0x7fff, 4800, 0, "serial 4711");
        (large[0x12], large[0x1e]) = (0x22, 1);
        let table = [device(16384, 3200, 2933, "x"), device(0, 0, 0, "x"), large, device(0x8200, 0, 0, "x")];
        let texts: Vec<_> = describe_modules(&table.concat()).collect();
        assert_eq!(texts, ["16384 MiB memory at 2933 MT/s", "65536 MiB DDR5 at 4800 MT/s", "512 KiB memory"]);
    }

    #[test]
    fn a_malformed_table_names_no_module() {
        for bytes in
            [&[][..], &[17, 3, 0], &[17, 200, 0, 0], &device(1, 0, 0, "x")[..40], &device(1, 0, 0, "")]
        {
            assert!(limit_from_table(bytes).is_err(), "{bytes:?}");
        }
        let after_the_end = [vec![END, 4, 0, 0, 0, 0], device(1, 5600, 0, "x")].concat();
        assert!(limit_from_table(&after_the_end).is_err());
    }
}
