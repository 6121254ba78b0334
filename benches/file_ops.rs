//! `cargo bench --bench file_ops`: see `src/suite/file_ops.rs`.
syscost::bench_group!();
