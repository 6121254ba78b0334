//! `cargo bench --bench empty_loop`: see `src/suite/empty_loop.rs`.
syscost::bench_group!();
