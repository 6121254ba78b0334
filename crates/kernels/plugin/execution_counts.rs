//! A plugin of QEMU's translator (`docs/devel/tcg-plugins`, API 1 to 4). It counts executed instructions by address between two marks
//! in the guest's code. `build.rs` compiles it as a separate library, without QEMU's headers.
//!
//! A mark is a no-op instruction that no compiler emits (`syscost_platform::emulator_mark`). Marks begin and end a bracket, whose
//! instructions are counted, and a batch, which groups brackets. At the mark that ends a turn, the plugin writes the batch of
//! median length. Other marks carry text, one byte each. Until the mark that starts the counting, the plugin watches only marks,
//! so that the guest starts as fast as without a plugin.
//!
//! Without `out=` the plugin reports that it was loaded and returns an error, so that the emulator ends. The file that `out=` names
//! has these lines: `s TEXT` is a line of text from the guest; `w TOTAL REPETITIONS` begins the median batch of a turn;
//! `ADDRESS COUNT REPETITIONS [TEXT]` is an instruction of that batch, with its disassembly under `listing=on`. The address 0
//! stands for all instructions outside the kernel. Under `order=on` a second file, named with `.order` behind the first name, has
//! the addresses of the same batches in the order of execution, 8 bytes each. The line `o NUMBER` states their number.
//!
//! # Invariants
//!
//! * **ONE-THREAD**: the emulator is started with one processor and one thread for it, so that callbacks never overlap.
//! * **API**: QEMU passes this argument to the callback, and keeps it valid until the callback returns.
//! * **LEAKED**: a `Site` is allocated once and never freed, because translated code holds its address.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};

type Translated = extern "C" fn(u64, *mut c_void);
type Executed = extern "C" fn(c_uint, *mut c_void);
type Ended = extern "C" fn(u64, *mut c_void);

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: u64, then: Translated);
    fn qemu_plugin_register_atexit_cb(id: u64, then: Ended, data: *mut c_void);
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        insn: *mut c_void,
        then: Executed,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_reset(id: u64, then: extern "C" fn(u64));
    fn qemu_plugin_tb_n_insns(tb: *const c_void) -> usize;
    fn qemu_plugin_tb_get_insn(tb: *const c_void, at: usize) -> *mut c_void;
    fn qemu_plugin_insn_data();
    fn qemu_plugin_insn_size(insn: *const c_void) -> usize;
    fn qemu_plugin_insn_vaddr(insn: *const c_void) -> u64;
    fn qemu_plugin_insn_disas(insn: *const c_void) -> *mut c_char;
    fn free(memory: *mut c_void);
}

/// The version of the API that the plugin asks QEMU for. The program that writes this library to a file replaces the number,
/// which it finds by the text that follows it.
#[repr(C)]
pub struct Version(c_int, [u8; 20]);

#[unsafe(no_mangle)]
pub static qemu_plugin_version: Version = Version(1, *b"syscost's version <-");

/// QEMU's description of itself (`qemu_info_t`): its first fields, which are the same in all versions of the API.
#[repr(C)]
pub struct Emulator {
    target: *const c_char,
    oldest: c_int,
    newest: c_int,
}

/// The first addresses of the kernel's half. AArch64 gives a program 48 bits, and RISC-V up to 56.
const KERNEL: u64 = 1 << 63;
/// The first version of the API in which `qemu_plugin_insn_data` copies the bytes of an instruction.
const COPIES: c_int = 3;
/// The most bytes that are read of an instruction; one of x86 has at most 15.
const LONGEST: usize = 16;

/// One instruction of the guest.
struct Site {
    /// Its address, or 0 if it lies outside the kernel.
    address: u64,
    /// Whether it is a string instruction with a repeat prefix.
    repeats: bool,
    count: u64,
    repetitions: u64,
    text: String,
}

/// The counts of one batch.
#[derive(Default)]
struct Batch {
    total: u64,
    repetitions: u64,
    sites: Vec<(*const Site, u64, u64)>,
    order: Vec<u64>,
}

#[derive(Default)]
struct State {
    id: u64,
    api: c_int,
    is_x86: bool,
    sites: HashMap<(u64, bool), *mut Site>,
    touched: Vec<*mut Site>,
    last: usize,
    in_batch: bool,
    has_order: bool,
    has_listing: bool,
    order: Vec<u64>,
    batches: Vec<Batch>,
    line: Vec<u8>,
    out: Option<BufWriter<File>>,
    orders: Option<BufWriter<File>>,
}

struct Shared(UnsafeCell<Option<State>>);
// SAFETY: ONE-THREAD.
unsafe impl Sync for Shared {}
static STATE: Shared = Shared(UnsafeCell::new(None));
static INSIDE: AtomicBool = AtomicBool::new(false);

#[allow(clippy::mut_from_ref, reason = "ONE-THREAD")]
fn state() -> &'static mut State {
    // SAFETY: ONE-THREAD, and no callback keeps the reference beyond its end.
    unsafe { (*STATE.0.get()).get_or_insert_default() }
}

/// Counts one execution of `site`, if a bracket is open.
extern "C" fn executed(_: c_uint, site: *mut c_void) {
    if !INSIDE.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: LEAKED, ONE-THREAD.
    let (state, site) = (state(), unsafe { &mut *site.cast::<Site>() });
    let this = std::ptr::from_ref(site) as usize;
    if site.count + site.repetitions == 0 {
        state.touched.push(site);
    }
    if site.repeats && state.last == this {
        site.repetitions += 1;
        return;
    }
    state.last = this;
    site.count += 1;
    if state.has_order {
        state.order.push(site.address);
    }
}

/// Acts on a mark: the byte in it selects the action.
extern "C" fn marked(_: c_uint, mark: *mut c_void) {
    let state = state();
    match mark as usize {
        1 => state.set_inside(state.in_batch),
        2 => state.set_inside(false),
        3 => state.in_batch = true,
        4 => state.end_batch(),
        5 => state.end_turn(),
        // SAFETY: API: the number is that of this plugin.
        6 => unsafe { qemu_plugin_reset(state.id, restarted) },
        _ => {}
    }
}

/// Takes one byte of text from the guest, and writes the line when it is complete.
extern "C" fn said(_: c_uint, byte: *mut c_void) {
    let (state, byte) = (state(), byte as usize as u8);
    if byte != b'\n' {
        return state.line.push(byte);
    }
    // A line begins a case. Batches of a turn that has not ended belong to a case that died.
    if state.in_batch {
        state.end_batch();
    }
    state.batches.clear();
    let line = std::mem::take(&mut state.line);
    state.write(format_args!("s {}\n", String::from_utf8_lossy(&line)));
}

impl State {
    fn write(&mut self, line: std::fmt::Arguments<'_>) {
        if let Some(out) = &mut self.out {
            let _ = out.write_fmt(line);
        }
    }

    /// Notes whether a bracket is open.
    fn set_inside(&mut self, inside: bool) {
        INSIDE.store(inside, Ordering::Relaxed);
        self.last = 0;
    }

    /// Moves the counts of the sites to a new batch, and resets them.
    fn end_batch(&mut self) {
        self.set_inside(false);
        self.in_batch = false;
        let mut batch = Batch { order: std::mem::take(&mut self.order), ..Batch::default() };
        for site in self.touched.drain(..) {
            // SAFETY: LEAKED, ONE-THREAD.
            let site = unsafe { &mut *site };
            batch.total += site.count;
            batch.repetitions += site.repetitions;
            batch.sites.push((site, site.count, site.repetitions));
            (site.count, site.repetitions) = (0, 0);
        }
        self.batches.push(batch);
    }

    /// Writes the batch of median length, since interrupts lengthen some batches.
    fn end_turn(&mut self) {
        let mut batches = std::mem::take(&mut self.batches);
        batches.sort_by_key(|batch| batch.total + batch.repetitions);
        let Some(batch) = batches.get(batches.len() / 2) else { return };
        self.write(format_args!("w {} {}\n", batch.total, batch.repetitions));
        for (site, count, repetitions) in &batch.sites {
            // SAFETY: LEAKED, ONE-THREAD.
            let Site { address, text, .. } = unsafe { &**site };
            self.write(format_args!("{address:x} {count} {repetitions} {text}\n"));
        }
        if let (true, Some(orders)) = (self.has_order, &mut self.orders) {
            let bytes: Vec<u8> = batch.order.iter().flat_map(|address| address.to_le_bytes()).collect();
            let _ = orders.write_all(&bytes).and_then(|()| orders.flush());
            self.write(format_args!("o {}\n", batch.order.len()));
        }
        let _ = self.out.as_mut().map(Write::flush);
    }

    /// The site of an instruction, which is allocated if it is new.
    fn site(&mut self, address: u64, repeats: bool, insn: *const c_void) -> *mut Site {
        let has_listing = self.has_listing && address >= KERNEL;
        *self.sites.entry((address, repeats)).or_insert_with(|| {
            let text = if has_listing { disassembly(insn) } else { String::new() };
            let address = if address >= KERNEL { address } else { 0 };
            Box::into_raw(Box::new(Site { address, repeats, count: 0, repetitions: 0, text }))
        })
    }

    /// The bytes of an instruction, and their number.
    fn code(&self, insn: *const c_void) -> ([u8; LONGEST], usize) {
        let mut code = [0; LONGEST];
        // SAFETY: API.
        let size = unsafe { qemu_plugin_insn_size(insn) }.min(LONGEST);
        let function = qemu_plugin_insn_data as unsafe extern "C" fn();
        if self.api < COPIES {
            // SAFETY: API: below this version the function takes an instruction and returns a pointer to its bytes.
            unsafe {
                let data: unsafe extern "C" fn(*const c_void) -> *const u8 = std::mem::transmute(function);
                std::ptr::copy_nonoverlapping(data(insn), code.as_mut_ptr(), size);
            }
        } else {
            // SAFETY: API: from this version on the function copies the bytes.
            unsafe {
                let copy: unsafe extern "C" fn(*const c_void, *mut u8, usize) -> usize =
                    std::mem::transmute(function);
                copy(insn, code.as_mut_ptr(), size);
            }
        }
        (code, size)
    }
}

fn disassembly(insn: *const c_void) -> String {
    // SAFETY: API: the text ends with a zero, and the plugin must free it.
    unsafe {
        let text = qemu_plugin_insn_disas(insn);
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        free(text.cast());
        copy
    }
}

/// Whether these bytes are `movs`, `cmps`, `stos`, `lods`, `scas`, `ins` or `outs` with a repeat prefix (Intel's manual,
/// volume 2, `REP`).
fn is_repeated(code: &[u8]) -> bool {
    let is_prefix = |byte: &&u8| matches!(byte, 0xf2 | 0xf3 | 0x66 | 0x67 | 0x40..=0x4f);
    let prefixes = code.iter().take_while(is_prefix).count();
    let is_string = matches!(code.get(prefixes), Some(0xa4..=0xa7 | 0xaa..=0xaf | 0x6c..=0x6f));
    is_string && code[..prefixes].iter().any(|byte| matches!(byte, 0xf2 | 0xf3))
}

/// The callback of a mark and the byte that is passed to it; `None` if this instruction is no mark.
fn mark(code: &[u8]) -> Option<(Executed, u8)> {
    match code {
        [0x66, 0x0f, 0x1f, 0x84, 0, number, 0xc0, 0x57, 0x5c] => Some((marked, *number)),
        [0x66, 0x0f, 0x1f, 0x84, 0, byte, 0xc0, 0x57, 0x5d] => Some((said, *byte)),
        _ => mark_of_word(u32::from_le_bytes(code.try_into().ok()?)),
    }
}

/// The same for an instruction of four bytes: `movz xzr, #0x5cNN` and `#0x5dNN` of AArch64, `lui zero, 0x5c7NN` and `0x5d7NN` of RISC-V.
fn mark_of_word(word: u32) -> Option<(Executed, u8)> {
    let (arm, riscv) = ((word >> 5) as u8, (word >> 12) as u8);
    match (word & !(0xff << 5), word & !(0xff << 12)) {
        (0xd28b_801f, _) => Some((marked, arm)),
        (0xd28b_a01f, _) => Some((said, arm)),
        (_, 0x5c70_0037) => Some((marked, riscv)),
        (_, 0x5d70_0037) => Some((said, riscv)),
        _ => None,
    }
}

/// Registers a callback for each mark in a translated block, and with `counts` for each other instruction.
fn watch(tb: *mut c_void, counts: bool) {
    let state = state();
    // SAFETY: API.
    for at in 0..unsafe { qemu_plugin_tb_n_insns(tb) } {
        // SAFETY: API.
        let (insn, address) = unsafe {
            let insn = qemu_plugin_tb_get_insn(tb, at);
            (insn, qemu_plugin_insn_vaddr(insn))
        };
        let (code, size) = state.code(insn);
        let (then, data): (Executed, usize) = match mark(&code[..size]) {
            Some((then, byte)) => (then, usize::from(byte)),
            None if counts => {
                let repeats = state.is_x86 && is_repeated(&code[..size]);
                (executed, state.site(address, repeats, insn) as usize)
            }
            None => continue,
        };
        // SAFETY: API; LEAKED.
        unsafe { qemu_plugin_register_vcpu_insn_exec_cb(insn, then, 0, data as *mut c_void) };
    }
}

/// QEMU calls it for each block that it translates before the mark that starts the counting.
extern "C" fn translated_before(_: u64, tb: *mut c_void) {
    watch(tb, false);
}

/// QEMU calls it for each block that it translates after that mark.
extern "C" fn translated(_: u64, tb: *mut c_void) {
    watch(tb, true);
}

/// QEMU calls it when it has dropped all translated code: from now on all instructions are counted.
extern "C" fn restarted(id: u64) {
    // SAFETY: API.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        qemu_plugin_register_atexit_cb(id, ended, std::ptr::null_mut());
    }
}

/// QEMU calls it at its end: the files are flushed and closed.
extern "C" fn ended(_: u64, _: *mut c_void) {
    let state = state();
    drop((state.out.take(), state.orders.take()));
}

/// # Safety
/// QEMU calls it once, with `count` words at `words`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    emulator: *const Emulator,
    count: c_int,
    words: *const *const c_char,
) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: API.
    let word = |at: usize| unsafe { CStr::from_ptr(*words.add(at)) }.to_string_lossy().into_owned();
    let words: Vec<_> = (0..count).map(word).collect();
    let state = state();
    // SAFETY: API.
    state.api = unsafe { (*emulator).newest };
    // SAFETY: API.
    state.is_x86 = unsafe { CStr::from_ptr((*emulator).target) } == c"x86_64";
    let Some(path) = words.iter().find_map(|word| word.strip_prefix("out=")) else {
        // A trial of whether the library loads: the error ends the emulator.
        let _ = writeln!(std::io::stderr(), "syscost: loaded by API {}", state.api);
        return 1;
    };
    let has = |flag: &str| words.iter().any(|word| word == flag);
    (state.id, state.has_order, state.has_listing) = (id, has("order=on"), has("listing=on"));
    let create = |path: &str| File::create(path).map(|file| BufWriter::with_capacity(1 << 20, file));
    let Ok(out) = create(path) else { return 1 };
    state.out = Some(out);
    state.orders = state.has_order.then(|| create(&format!("{path}.order")).ok()).flatten();
    // SAFETY: API.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, translated_before);
        qemu_plugin_register_atexit_cb(id, ended, std::ptr::null_mut());
    }
    0
}
