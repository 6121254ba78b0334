//! `cargo bench --bench container`: see `src/suite/container.rs`.
syscost::bench_group!();
