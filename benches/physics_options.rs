//! What each physics option costs and changes: a table for each robot.
//!
//! `cargo x bench --bench physics_options`. All options take the same physics step from the same states in turns; times are medians
//! over the moments at which states were taken.

#[path = "../tests/physics_options/states.rs"]
mod states;

use std::time::Duration;

use states::{Comparison, ROWS, TASKS, compare};

fn median(times: &[Duration]) -> f64 {
    let mut times: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    // `cargo bench` passes options that are for criterion.
    for task in TASKS {
        let comparisons = compare(task);
        let Some(stock) = comparisons.first().map(|stock| median(&stock.times)) else { continue };
        println!("{task}: {} states, {ROWS} rows", comparisons[0].states);
        println!(
            "| options | µs per row and physics step | of stock | greatest difference of qpos | of qvel | states with more than 1e-12 |"
        );
        println!("|---|---:|---:|---:|---:|---:|");
        for Comparison { variant, times, qpos, qvel, beyond, .. } in &comparisons {
            let time = median(times);
            let each = time * 1e6 / ROWS as f64;
            println!("| {variant} | {each:.1} | {:.1} % | {qpos:.1e} | {qvel:.1e} | {beyond} |", 100.0 * time / stock);
        }
        println!();
    }
}
