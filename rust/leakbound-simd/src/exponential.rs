//! Constants of e^x = 2^k · e^r with r = x − k ln 2 and |r| ≤ ½ ln 2.

/// ln 2 in two parts; whole multiples of the first up to 2²⁰ are exact.
pub(crate) const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
pub(crate) const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// 1/n! for n = 16, 15, …, 0: the next term of the series of e^r is below 10⁻²².
pub(crate) const INVERSE_FACTORIALS: [f64; 17] = [
    4.779_477_332_387_385e-14,
    7.647_163_731_819_816e-13,
    1.147_074_559_772_972_5e-11,
    1.605_904_383_682_161_3e-10,
    2.087_675_698_786_81e-9,
    2.505_210_838_544_172e-8,
    2.755_731_922_398_589e-7,
    2.755_731_922_398_589_3e-6,
    2.480_158_730_158_73e-5,
    1.984_126_984_126_984e-4,
    1.388_888_888_888_889e-3,
    8.333_333_333_333_333e-3,
    4.166_666_666_666_666_4e-2,
    0.166_666_666_666_666_66,
    0.5,
    1.0,
    1.0,
];
