//! What is drawn, against what the distributions are defined by.

use manege::components::{StreamId, Streams};
use manege::tasks::terms::events::Distribution;

const COUNT: usize = 40_000;

/// A sorted sample.
fn sample(distribution: Distribution) -> Vec<f64> {
    let mut draws = Streams::global(17).draws(StreamId::new("test/sample"), 0);
    let mut sample: Vec<f64> = (0..COUNT).map(|_| distribution.draw(&mut draws)).collect();
    sample.sort_by(f64::total_cmp);
    sample
}

fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

#[test]
fn uniform_draws_fill_their_range_evenly() {
    let sample = sample(Distribution::uniform(0.6, 1.4));
    assert!(sample[0] >= 0.6 && sample[0] < 0.601 && sample[COUNT - 1] < 1.4 && sample[COUNT - 1] > 1.399);
    // The standard error of the mean is 0.8 / √12 / √40000.
    assert!((mean(&sample) - 1.0).abs() < 5.0 * 0.00116, "{}", mean(&sample));
    for (quantile, expected) in [(0.25, 0.8), (0.5, 1.0), (0.75, 1.2)] {
        let actual = sample[(quantile * COUNT as f64) as usize];
        assert!((actual - expected).abs() < 0.01, "quantile {quantile}: {actual}");
    }
}

#[test]
fn log_uniform_draws_are_as_often_half_as_twice() {
    let sample = sample(Distribution::log_uniform(0.25, 4.0));
    assert!(sample[0] >= 0.25 && sample[0] < 0.2505 && sample[COUNT - 1] <= 4.0 && sample[COUNT - 1] > 3.99);
    // Quantiles are min · (max / min)^q, so that the median is √(0.25 · 4) = 1.
    for (quantile, expected) in [(0.25, 0.5), (0.5, 1.0), (0.75, 2.0)] {
        let actual = sample[(quantile * COUNT as f64) as usize];
        assert!((actual / expected - 1.0).abs() < 0.035, "quantile {quantile}: {actual}");
    }
    // The mean is (max − min) / ln(max / min).
    let expected = 3.75 / 16f64.ln();
    assert!((mean(&sample) / expected - 1.0).abs() < 0.02, "{} should be {expected}", mean(&sample));
}

#[test]
fn gaussian_draws_have_their_mean_and_deviation() {
    let sample = sample(Distribution::gaussian(1.0, 0.2));
    assert!((mean(&sample) - 1.0).abs() < 0.005, "{}", mean(&sample));
    let variance = sample.iter().map(|x| (x - 1.0).powi(2)).sum::<f64>() / COUNT as f64;
    assert!((variance.sqrt() - 0.2).abs() < 0.004, "{}", variance.sqrt());
    // 68.27 % lie within one standard deviation.
    let within = sample.iter().filter(|x| (**x - 1.0).abs() < 0.2).count() as f64 / COUNT as f64;
    assert!((within - 0.6827).abs() < 0.012, "{within}");
}

#[test]
fn a_distribution_of_one_number_gives_exactly_that() {
    for value in [1.1, 0.3, 7.0, 1e-3] {
        let only = [
            Distribution::uniform(value, value),
            Distribution::log_uniform(value, value),
            Distribution::gaussian(value, 0.0),
        ];
        for distribution in only {
            assert!(sample(distribution).iter().all(|drawn| *drawn == value), "{distribution:?}");
        }
    }
}
