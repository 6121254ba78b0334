//! `cargo bench --bench technique`: see `src/suite/technique.rs`.
syscost::bench_group!();
