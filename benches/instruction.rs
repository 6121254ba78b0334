//! `cargo bench --bench instruction`: see `src/suite/instruction.rs`.
syscost::bench_group!();
