//! The largest convex function below points of the plane.

use std::cmp::Ordering;

/// Corners of the largest convex function below points, by increasing x.
///
/// Domain: points in any order, without NaN; of those at one x the lowest counts. Accuracy: corners
/// are points as they came; which of them are corners is decided by two rounded products. Cost: that
/// of sorting. Source: A. M. Andrew, "Another efficient algorithm for convex hulls in two
/// dimensions" (1979).
///
/// ```
/// use leakbound_math::hull::lower_hull;
///
/// let points = vec![(1.0, 0.0), (0.0, 1.0), (0.5, 0.2), (0.5, 0.9), (0.6, 0.4)];
/// assert_eq!(lower_hull(points), [(0.0, 1.0), (0.5, 0.2), (1.0, 0.0)]);
/// ```
pub fn lower_hull(mut points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    // Tuples are compared by x first, and zeros of both signs are equal.
    if !points.is_sorted() {
        points.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    }
    let mut corners: Vec<(f64, f64)> = Vec::with_capacity(points.len());
    for here in points {
        if corners.last().is_some_and(|last| last.0 == here.0) {
            continue;
        }
        while let [.., a, b] = corners[..]
            && is_above(a, b, here)
        {
            corners.pop();
        }
        corners.push(here);
    }
    corners
}

/// Whether b lies on or above the line from a to c.
fn is_above(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> bool {
    (b.1 - a.1) * (c.0 - a.0) >= (c.1 - a.1) * (b.0 - a.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Purpose, Stream};

    #[test]
    fn no_point_is_below_and_corners_are_points_that_turn_upwards() {
        let mut stream = Stream::new(Purpose::Rankings, 0, 0);
        for size in [1, 2, 3, 10, 500] {
            let points: Vec<(f64, f64)> = (0..size)
                .map(|_| (f64::from(stream.below(40)), stream.uniform()))
                .collect();
            let corners = lower_hull(points.clone());
            assert!(corners.iter().all(|corner| points.contains(corner)));
            let slope = |pair: &[(f64, f64)]| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
            let slopes: Vec<f64> = corners.windows(2).map(slope).collect();
            assert!(slopes.windows(2).all(|pair| pair[0] < pair[1]));
            for (x, y) in points {
                let next = corners.partition_point(|corner| corner.0 < x);
                let height = if corners[next].0 == x {
                    corners[next].1
                } else {
                    let (a, b) = (corners[next - 1], corners[next]);
                    a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0)
                };
                assert!(y >= height - 1e-12);
            }
        }
    }

    #[test]
    fn zeros_of_both_signs_are_one_place() {
        assert_eq!(lower_hull(vec![(0.0, 0.5), (-0.0, 0.7)]), [(0.0, 0.5)]);
        assert!(lower_hull(vec![]).is_empty());
    }
}
