//! Rational approximations of the normal quantile: Wichura 1988, "Algorithm AS 241: the percentage
//! points of the normal distribution", Applied Statistics 37, routine PPND16 (1e-16 relative).

/// Smallest p of the central approximation: ½ − 0.425.
pub(super) const CENTRE: f64 = 0.075;

/// Smallest ln p of the tail approximation, where √(−ln p) = 27.
pub(super) const LN_FAR: f64 = -729.0;

/// Φ⁻¹(½ + d) for |d| ≤ 0.425.
pub(super) fn central(d: f64) -> f64 {
    let z = 0.425 * 0.425 - d * d;
    d * horner(&CENTRE_NUMERATOR, z) / horner(&CENTRE_DENOMINATOR, z)
}

/// −Φ⁻¹(p) for ln p from [`LN_FAR`] to that of [`CENTRE`].
pub(super) fn tail(ln_p: f64) -> f64 {
    let root = (-ln_p).sqrt();
    if root <= 5.0 {
        horner(&MIDDLE_NUMERATOR, root - 1.6) / horner(&MIDDLE_DENOMINATOR, root - 1.6)
    } else {
        horner(&FAR_NUMERATOR, root - 5.0) / horner(&FAR_DENOMINATOR, root - 5.0)
    }
}

fn horner(coefficients: &[f64; 8], z: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * z + c)
}

const CENTRE_NUMERATOR: [f64; 8] = [
    3.387_132_872_796_366_5,
    133.141_667_891_784_38,
    1_971.590_950_306_551_3,
    13_731.693_765_509_46,
    45_921.953_931_549_87,
    67_265.770_927_008_7,
    33_430.575_583_588_13,
    2_509.080_928_730_122_7,
];
const CENTRE_DENOMINATOR: [f64; 8] = [
    1.0,
    42.313_330_701_600_91,
    687.187_007_492_057_9,
    5_394.196_021_424_751,
    21_213.794_301_586_597,
    39_307.895_800_092_71,
    28_729.085_735_721_943,
    5_226.495_278_852_546,
];
const MIDDLE_NUMERATOR: [f64; 8] = [
    1.423_437_110_749_683_5,
    4.630_337_846_156_546,
    5.769_497_221_460_691,
    3.647_848_324_763_204_5,
    1.270_458_252_452_368_4,
    0.241_780_725_177_450_6,
    0.022_723_844_989_269_184,
    0.000_774_545_014_278_341_4,
];
const MIDDLE_DENOMINATOR: [f64; 8] = [
    1.0,
    2.053_191_626_637_759,
    1.676_384_830_183_803_8,
    0.689_767_334_985_1,
    0.148_103_976_427_480_08,
    0.015_198_666_563_616_457,
    0.000_547_593_808_499_534_5,
    1.050_750_071_644_416_9e-09,
];
const FAR_NUMERATOR: [f64; 8] = [
    6.657_904_643_501_103,
    5.463_784_911_164_114,
    1.784_826_539_917_291_3,
    0.296_560_571_828_504_87,
    0.026_532_189_526_576_124,
    0.001_242_660_947_388_078_4,
    2.711_555_568_743_487_6e-05,
    2.010_334_399_292_288_1e-07,
];
const FAR_DENOMINATOR: [f64; 8] = [
    1.0,
    0.599_832_206_555_888,
    0.136_929_880_922_735_8,
    0.014_875_361_290_850_615,
    0.000_786_869_131_145_613_3,
    1.846_318_317_510_054_8e-05,
    1.421_511_758_316_446e-07,
    2.044_263_103_389_939_7e-15,
];
