//! MD5 of short texts: the order in which a random split is paired, the same in every engine.

use std::fmt::Display;
use std::io::Write;

use rayon::prelude::*;

use crate::error::AuditError;
use crate::interrupt::Interrupt;

/// Left rotations of the four rounds, four steps at a time.
const TURNS: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];
const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
/// Whole parts of 2³² |sin i|, i from 1 on, as RFC 1321 lists them.
#[rustfmt::skip]
const SINES: [u32; 64] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
    0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
    0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
    0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
    0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
];

/// For each id, the first 8 bytes of the MD5 digest of the text of `prefix` and id, the first byte
/// the most significant.
pub fn hashed<T: Display + Sync>(
    prefix: &str,
    ids: &[T],
    interrupt: &Interrupt,
) -> Result<Vec<u64>, AuditError> {
    let word = |text: &mut Vec<u8>, id| {
        interrupt.check()?;
        text.clear();
        // Writing to a vector does not fail.
        let _ = write!(text, "{prefix}{id}");
        Ok(first_word(text))
    };
    ids.par_iter().map_init(Vec::new, word).collect()
}

fn first_word(text: &[u8]) -> u64 {
    let (whole, rest) = text.as_chunks::<64>();
    let mut state = whole.iter().fold(START, mixed);
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = 0x80;
    if rest.len() >= 56 {
        state = mixed(state, &last);
        last = [0; 64];
    }
    last[56..].copy_from_slice(&(text.len() as u64).wrapping_mul(8).to_le_bytes());
    let [first, second, ..] = mixed(state, &last);
    u64::from(first.swap_bytes()) << 32 | u64::from(second.swap_bytes())
}

fn mixed(state: [u32; 4], block: &[u8; 64]) -> [u32; 4] {
    let mut words = [0; 16];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    let [mut a, mut b, mut c, mut d] = state;
    for step in 0..64 {
        let (mix, word) = match step / 16 {
            0 => ((b & c) | (!b & d), step),
            1 => ((d & b) | (!d & c), 5 * step + 1),
            2 => (b ^ c ^ d, 3 * step + 5),
            _ => (c ^ (b | !d), 7 * step),
        };
        let turned = a
            .wrapping_add(mix)
            .wrapping_add(SINES[step])
            .wrapping_add(words[word % 16])
            .rotate_left(TURNS[step / 16][step % 4]);
        (a, d, c, b) = (d, c, b, b.wrapping_add(turned));
    }
    let [first, second, third, fourth] = state;
    [
        first.wrapping_add(a),
        second.wrapping_add(b),
        third.wrapping_add(c),
        fourth.wrapping_add(d),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From RFC 1321, and the ends of blocks by Python's hashlib.
    #[test]
    fn words_are_those_of_the_standard() {
        let known: [(&[u8], u64); 6] = [
            (b"", 0xd41d_8cd9_8f00_b204),
            (b"abc", 0x9001_5098_3cd2_4fb0),
            (b"message digest", 0xf96b_697d_7cb7_938d),
            (&[b'7'; 55], 0x9f30_0501_2df6_0864),
            (&[b'7'; 56], 0x2716_015f_6878_cf7d),
            (&[b'7'; 130], 0x3628_d09b_afef_3f14),
        ];
        for (text, word) in known {
            assert_eq!(first_word(text), word, "{} bytes", text.len());
        }
        let go_on = Interrupt::default();
        let words = hashed("a", &["bc", "", "bc"], &go_on).unwrap();
        assert_eq!([words[0], words[2]], [known[1].1; 2]);
        assert_eq!(hashed("7", &[77], &go_on), hashed("", &["777"], &go_on));
    }
}
