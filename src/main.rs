//! The `manege` command.

fn main() {}
