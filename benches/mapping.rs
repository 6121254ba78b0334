//! `cargo bench --bench mapping`: see `src/suite/mapping.rs`.
syscost::bench_group!();
