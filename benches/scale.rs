//! `cargo bench --bench scale`: see `src/suite/scale.rs`.
syscost::bench_group!();
