//! `cargo bench --bench context_switch`: see `src/suite/context_switch.rs`.
syscost::bench_group!();
