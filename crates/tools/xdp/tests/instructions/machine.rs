//! An interpreter of BPF programs that counts: instructions, lookups in arrays and hash tables, other helpers.
//!
//! It runs the committed object without privileges and without the kernel, so that counts are the same on every machine.
//! A pointer is a number of a region of memory and an offset in it; an access outside of its region ends the test.
//! What the kernel checks before it runs a program is not checked here.

use std::collections::{BTreeMap, HashSet};

use aya_obj::Object;
use aya_obj::generated::bpf_insn;

/// Frames begin behind this room.
const HEADROOM: usize = 256;
const STACK: usize = 512;
/// Bits of an offset in a pointer.
const OFFSET: u32 = 40;
const CONTEXT: u64 = 1;
const PACKET: u64 = 2;
const STACKS: u64 = 3;
const RING: u64 = 4;
const FIRST_MAP: u64 = 16;
/// Marks in the upper byte of what is no memory.
const MAP: u64 = 1 << 56;
const CODE: u64 = 1 << 57;

/// What a program did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) instructions: u64,
    pub(crate) arrays: u64,
    pub(crate) hashes: u64,
    pub(crate) helpers: u64,
}

/// A map. Values lie in one region, one behind the other.
pub(crate) struct Table {
    kind: u32,
    key: usize,
    value: usize,
    bytes: Vec<u8>,
    keys: BTreeMap<Vec<u8>, usize>,
}

pub(crate) struct Machine {
    code: BTreeMap<String, Vec<bpf_insn>>,
    names: Vec<String>,
    tables: Vec<Table>,
    packet: Vec<u8>,
    start: usize,
    stacks: Vec<u8>,
    ring: Vec<u8>,
    ingress: u32,
    queue: u32,
    counts: Counts,
    /// The device that the last redirect was to.
    pub(crate) redirected: Option<u32>,
}

impl Machine {
    pub(crate) fn new(object: &[u8]) -> Machine {
        let mut object = Object::parse(object).unwrap();
        let text: HashSet<usize> = object
            .functions
            .keys()
            .map(|(section, _)| *section)
            .collect();
        let maps: Vec<_> = object.maps.clone().into_iter().collect();
        let numbered = maps
            .iter()
            .zip(0..)
            .map(|((name, map), number)| (name.as_str(), number, map));
        object.relocate_maps(numbered, &text).unwrap();
        object.relocate_calls(&text).unwrap();
        let code = object
            .programs
            .iter()
            .map(|(name, program)| {
                let function = &object.functions[&program.function_key()];
                (name.clone(), function.instructions.clone())
            })
            .collect();
        let table = |map: &aya_obj::Map| {
            let (kind, value) = (map.map_type(), map.value_size() as usize);
            let is_array = matches!(kind, 2 | 6);
            Table {
                kind,
                key: map.key_size() as usize,
                value,
                bytes: if is_array {
                    vec![0; value.next_multiple_of(8) * map.max_entries() as usize]
                } else {
                    Vec::new()
                },
                keys: BTreeMap::new(),
            }
        };
        Machine {
            code,
            tables: maps.iter().map(|(_, map)| table(map)).collect(),
            names: maps.into_iter().map(|(name, _)| name).collect(),
            packet: Vec::new(),
            start: 0,
            stacks: vec![0; STACK * 8],
            ring: vec![0; 4096],
            ingress: 0,
            queue: 0,
            counts: Counts::default(),
            redirected: None,
        }
    }

    fn table(&mut self, name: &str) -> &mut Table {
        let number = self.names.iter().position(|it| it == name).unwrap();
        &mut self.tables[number]
    }

    /// Writes an entry of an array.
    pub(crate) fn set(&mut self, name: &str, index: u32, value: &[u8]) {
        let table = self.table(name);
        let at = index as usize * table.value.next_multiple_of(8);
        assert_eq!(value.len(), table.value, "{name}");
        table.bytes[at..at + value.len()].copy_from_slice(value);
    }

    /// Writes an entry of a table with keys.
    pub(crate) fn insert(&mut self, name: &str, key: &[u8], value: &[u8]) {
        self.table(name).insert(key, value);
    }

    /// Runs a program over a frame: its verdict, what it counted, and the frame as it leaves.
    pub(crate) fn run(
        &mut self,
        program: &str,
        ingress: u32,
        queue: u32,
        frame: &[u8],
    ) -> (u64, Counts, Vec<u8>) {
        self.packet = vec![0; HEADROOM];
        self.packet.extend_from_slice(frame);
        (self.start, self.ingress, self.queue) = (HEADROOM, ingress, queue);
        self.counts = Counts::default();
        self.redirected = None;
        let code = self.code[program].clone();
        let mut registers = [0; 11];
        registers[1] = CONTEXT << OFFSET;
        let verdict = self.function(&code, 0, 0, registers);
        (verdict, self.counts, self.packet[self.start..].to_vec())
    }

    fn function(&mut self, code: &[bpf_insn], at: usize, depth: usize, mut r: [u64; 11]) -> u64 {
        r[10] = STACKS << OFFSET | (STACK * (depth + 1)) as u64;
        let mut at = at;
        loop {
            let now = code[at];
            at += 1;
            self.counts.instructions += 1;
            assert!(
                self.counts.instructions < 1_000_000,
                "the program does not end"
            );
            let (to, from) = (usize::from(now.dst_reg()), usize::from(now.src_reg()));
            let immediate = now.imm as i64 as u64;
            let operand = if now.code & 8 == 0 {
                immediate
            } else {
                r[from]
            };
            let jump = |at: usize, by: i64| (at as i64 + by) as usize;
            match now.code & 7 {
                7 if now.code & 0xf0 == 0xd0 => panic!("byte order of 64-bit class"),
                7 => r[to] = calculate(now.code & 0xf0, r[to], operand),
                4 if now.code & 0xf0 == 0xd0 => r[to] = swap(r[to], now.imm, now.code & 8 != 0),
                4 => r[to] = calculate32(now.code & 0xf0, r[to] as u32, operand as u32),
                0 if now.code == 0x18 => {
                    let high = code[at].imm as u32;
                    r[to] = match now.src_reg() {
                        0 => u64::from(now.imm as u32) | u64::from(high) << 32,
                        1 => MAP | u64::from(now.imm as u32),
                        4 => CODE | jump(at, i64::from(now.imm)) as u64,
                        other => panic!("a constant of kind {other}"),
                    };
                    at += 1;
                }
                1 => {
                    r[to] = self.load(
                        r[from].wrapping_add_signed(i64::from(now.off)),
                        size(now.code),
                    )
                }
                2 => self.store(
                    r[to].wrapping_add_signed(i64::from(now.off)),
                    size(now.code),
                    immediate,
                ),
                3 if now.code & 0xe0 == 0xc0 => {
                    let (address, bytes) = (
                        r[to].wrapping_add_signed(i64::from(now.off)),
                        size(now.code),
                    );
                    let old = self.load(address, bytes);
                    let new = match now.imm & !1 {
                        0 => old.wrapping_add(r[from]),
                        0xf0 => {
                            let is_same = old == r[0];
                            r[0] = old;
                            if is_same { r[from] } else { old }
                        }
                        other => panic!("atomic operation {other}"),
                    };
                    if now.imm == 1 {
                        r[from] = old;
                    }
                    self.store(address, bytes, new);
                }
                3 => self.store(
                    r[to].wrapping_add_signed(i64::from(now.off)),
                    size(now.code),
                    r[from],
                ),
                5 if now.code == 0x95 => return r[0],
                5 if now.code == 0x85 && now.src_reg() == 1 => {
                    let result = self.function(code, jump(at, i64::from(now.imm)), depth + 1, r);
                    r[0] = result;
                }
                5 if now.code == 0x85 => {
                    let given = [r[1], r[2], r[3], r[4], r[5]];
                    r[0] = self.helper(now.imm, given, code, depth);
                }
                class @ (5 | 6) => {
                    let taken = if class == 5 {
                        compare(now.code & 0xf0, r[to], operand)
                    } else {
                        let wide = |x: u64| i64::from(x as i32) as u64;
                        let signed = matches!(now.code & 0xf0, 0x60 | 0x70 | 0xc0 | 0xd0);
                        let (a, b) = (r[to], operand);
                        if signed {
                            compare(now.code & 0xf0, wide(a), wide(b))
                        } else {
                            compare(now.code & 0xf0, a & 0xffff_ffff, b & 0xffff_ffff)
                        }
                    };
                    if taken {
                        at = jump(at, i64::from(now.off));
                    }
                }
                _ => panic!("instruction {:#x}", now.code),
            }
        }
    }

    fn region(&mut self, region: u64) -> &mut Vec<u8> {
        match region {
            PACKET => &mut self.packet,
            STACKS => &mut self.stacks,
            RING => &mut self.ring,
            map => &mut self.tables[(map - FIRST_MAP) as usize].bytes,
        }
    }

    fn bytes(&mut self, address: u64, length: usize) -> &mut [u8] {
        let (region, at) = (address >> OFFSET, (address & ((1 << OFFSET) - 1)) as usize);
        let start = self.start;
        assert!(region != PACKET || at >= start, "a read before the frame");
        &mut self.region(region)[at..at + length]
    }

    fn load(&mut self, address: u64, length: usize) -> u64 {
        if address >> OFFSET == CONTEXT {
            return match address & 0xff {
                0 => PACKET << OFFSET | self.start as u64,
                4 => PACKET << OFFSET | self.packet.len() as u64,
                12 => u64::from(self.ingress),
                16 => u64::from(self.queue),
                other => panic!("context at {other}"),
            };
        }
        let mut value = [0; 8];
        value[..length].copy_from_slice(self.bytes(address, length));
        u64::from_le_bytes(value)
    }

    fn store(&mut self, address: u64, length: usize, value: u64) {
        self.bytes(address, length)
            .copy_from_slice(&value.to_le_bytes()[..length]);
    }

    fn helper(&mut self, number: i32, given: [u64; 5], code: &[bpf_insn], depth: usize) -> u64 {
        let map = (given[0] & 0xffff_ffff) as usize;
        match number {
            1 => {
                let (kind, length) = (self.tables[map].kind, self.tables[map].key);
                let key = self.bytes(given[1], length).to_vec();
                match kind {
                    2 | 6 => self.counts.arrays += 1,
                    _ => self.counts.hashes += 1,
                }
                let table = &self.tables[map];
                table
                    .find(&key)
                    .map_or(0, |at| (FIRST_MAP + map as u64) << OFFSET | at as u64)
            }
            2 => {
                self.counts.hashes += 1;
                let (key, value) = (self.tables[map].key, self.tables[map].value);
                let key = self.bytes(given[1], key).to_vec();
                let value = self.bytes(given[2], value).to_vec();
                self.tables[map].insert(&key, &value);
                0
            }
            181 => {
                for index in 0..given[0] {
                    let mut r = [0; 11];
                    (r[1], r[2]) = (index, given[2]);
                    let at = (given[1] & 0xffff_ffff) as usize;
                    if self.function(code, at, depth + 1, r) != 0 {
                        return index + 1;
                    }
                }
                given[0]
            }
            _ => {
                self.counts.helpers += 1;
                match number {
                    // Clocks stand still, and nothing is random.
                    5 | 7 | 8 | 132 | 160 => 1,
                    44 => {
                        self.start = self.start.wrapping_add_signed(given[1] as i32 as isize);
                        0
                    }
                    51 => {
                        let key = (given[1] as u32).to_le_bytes();
                        let is_broadcast = given[2] & 8 != 0;
                        let found = is_broadcast || self.tables[map].keys.contains_key(&key[..]);
                        self.redirected = found.then_some(given[1] as u32);
                        if found { 4 } else { given[2] & 3 }
                    }
                    131 => RING << OFFSET,
                    189 => {
                        let (from, length) = (given[1] as usize + self.start, given[3] as usize);
                        let part = self.packet[from..from + length].to_vec();
                        self.bytes(given[2], length).copy_from_slice(&part);
                        0
                    }
                    other => panic!("helper {other}"),
                }
            }
        }
    }
}

impl Table {
    fn insert(&mut self, key: &[u8], value: &[u8]) {
        assert_eq!((key.len(), value.len()), (self.key, self.value));
        let end = self.bytes.len();
        let at = *self.keys.entry(key.to_vec()).or_insert(end);
        if at == end {
            self.bytes.resize(end + self.value.next_multiple_of(8), 0);
        }
        self.bytes[at..at + value.len()].copy_from_slice(value);
    }

    /// Where the value of a key begins.
    fn find(&self, key: &[u8]) -> Option<usize> {
        match self.kind {
            2 | 6 => {
                let index = u32::from_le_bytes(key.try_into().unwrap()) as usize;
                let at = index * self.value.next_multiple_of(8);
                (at < self.bytes.len()).then_some(at)
            }
            // The longest prefix that has the address.
            11 => self
                .keys
                .iter()
                .filter(|(prefix, _)| {
                    let length = u32::from_le_bytes(prefix[..4].try_into().unwrap()) as usize;
                    let bit = |bytes: &[u8], at: usize| bytes[4 + at / 8] >> (7 - at % 8) & 1;
                    (0..length).all(|at| bit(prefix, at) == bit(key, at))
                })
                .max_by_key(|(prefix, _)| u32::from_le_bytes(prefix[..4].try_into().unwrap()))
                .map(|(_, at)| *at),
            _ => self.keys.get(key).copied(),
        }
    }
}

fn size(code: u8) -> usize {
    match code & 0x18 {
        0 => 4,
        8 => 2,
        0x10 => 1,
        _ => 8,
    }
}

fn swap(value: u64, bits: i32, is_big: bool) -> u64 {
    match (bits, is_big) {
        (16, true) => u64::from((value as u16).swap_bytes()),
        (32, true) => u64::from((value as u32).swap_bytes()),
        (_, true) => value.swap_bytes(),
        (16, false) => u64::from(value as u16),
        (32, false) => u64::from(value as u32),
        (_, false) => value,
    }
}

fn calculate(operation: u8, a: u64, b: u64) -> u64 {
    match operation {
        0 => a.wrapping_add(b),
        0x10 => a.wrapping_sub(b),
        0x20 => a.wrapping_mul(b),
        0x30 => a.checked_div(b).unwrap_or(0),
        0x40 => a | b,
        0x50 => a & b,
        0x60 => a << (b & 63),
        0x70 => a >> (b & 63),
        0x80 => a.wrapping_neg(),
        0x90 => a.checked_rem(b).unwrap_or(a),
        0xa0 => a ^ b,
        0xb0 => b,
        0xc0 => ((a as i64) >> (b & 63)) as u64,
        other => panic!("operation {other:#x}"),
    }
}

fn calculate32(operation: u8, a: u32, b: u32) -> u64 {
    u64::from(match operation {
        0x60 => a << (b & 31),
        0x70 => a >> (b & 31),
        0xc0 => ((a as i32) >> (b & 31)) as u32,
        other => calculate(other, u64::from(a), u64::from(b)) as u32,
    })
}

fn compare(operation: u8, a: u64, b: u64) -> bool {
    let (signed_a, signed_b) = (a as i64, b as i64);
    match operation {
        0 => true,
        0x10 => a == b,
        0x20 => a > b,
        0x30 => a >= b,
        0x40 => a & b != 0,
        0x50 => a != b,
        0x60 => signed_a > signed_b,
        0x70 => signed_a >= signed_b,
        0xa0 => a < b,
        0xb0 => a <= b,
        0xc0 => signed_a < signed_b,
        0xd0 => signed_a <= signed_b,
        other => panic!("comparison {other:#x}"),
    }
}
