//! What the search for joint certificates proves, against what it proved when the cases were stored
//! (`joint_search.csv`): levels of ladders from 10³ to 10⁷ examples and the counts asked of them.
#![allow(clippy::unwrap_used)]

use leakbound_core::Interrupt;
use leakbound_core::fdp::{
    Counts,
    certificate::JointCertificate,
    tradeoff::{Gaussian, Laplace, TradeOff},
};

const ROWS: &str = include_str!("joint_search.csv");
const BETA: f64 = 0.05;
/// A search may end this much lower, as rounding decides which of many near solutions it ends in.
const SHARE: f64 = 0.999;

struct Case {
    laplace: bool,
    levels: Vec<Counts>,
    made_at: f64,
    proved: f64,
}

impl Case {
    fn new(row: &str) -> Self {
        let fields: Vec<&str> = row.split(',').collect();
        let number = |i: usize| fields[i].parse::<f64>().unwrap();
        let list = |i: usize| fields[i].split(' ').map(|x| x.parse::<u64>().unwrap());
        let one_sided = fields[2] == "1";
        let levels = list(3).zip(list(4)).map(|(guesses, correct)| {
            Counts::new(number(1), guesses, correct, 2, one_sided).unwrap()
        });
        Self {
            laplace: fields[0] == "laplace",
            levels: levels.collect(),
            made_at: number(5),
            proved: number(6),
        }
    }

    fn curve(&self, parameter: f64) -> Box<dyn TradeOff> {
        if self.laplace {
            Box::new(Laplace::new(parameter).unwrap())
        } else {
            Box::new(Gaussian::new(parameter, 0.0).unwrap())
        }
    }

    /// The largest parameter at which a certificate proves at most β.
    fn largest(&self, certificate: &JointCertificate) -> f64 {
        let (mut low, mut high) = (0.0, 4.0 * self.made_at);
        for _ in 0..45 {
            let middle = 0.5 * (low + high);
            if certificate.bound_for(&*self.curve(middle)) <= BETA {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// What is proved by a certificate, and by one that begins there.
    fn bound(&self) -> f64 {
        let none = Interrupt::default();
        let first = self.curve(self.made_at);
        let first = JointCertificate::new(&self.levels, &*first, &none).unwrap();
        let bound = self.largest(&first);
        let second = first.made_at(&*self.curve(bound), &none).unwrap();
        bound.max(self.largest(&second))
    }
}

#[test]
fn no_less_is_proved_than_was() {
    for row in ROWS.lines().skip(1) {
        let case = Case::new(row);
        let (bound, levels) = (case.bound(), case.levels.len());
        assert!(
            bound >= SHARE * case.proved,
            "{levels} levels, made at {}: {bound} after {}",
            case.made_at,
            case.proved
        );
    }
}
