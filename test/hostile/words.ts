import { type Random, randomUuid } from '../races/random.ts';

/* The words of hostile requests: what the API understands, and what it should not trip over. */

/** The providers that exist at the beginning; consumers have the same UUIDs. */
export const uuids = [
  '8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11',
  '1b1d3c4e-1111-4222-8333-444455556666',
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
];
/** Numbers at their limits, and what is nearly a number. */
export const numbers = [
  '0',
  '-0',
  '1',
  '-1',
  '0.5',
  '1e3',
  '1E+400',
  '-1e-400',
  '2147483647',
  '2147483648',
  '-2147483649',
  '4294967296',
  '9007199254740993',
  '9223372036854775808',
  '1e308',
  '3.40282e38',
  '0x10',
  'NaN',
  'Infinity',
  '01',
  '1_000',
  '١٢',
];
/** Texts that programs get wrong. */
export const texts = [
  '',
  ' ',
  '\u0000',
  '\uFEFF',
  '\uD800',
  '\u{1F600}',
  'İ',
  'ß',
  'A'.repeat(300),
  'e\u0301',
  '\u202E',
  '%',
  '%00',
  '_',
  "'",
  '"',
  '\\',
  '../..',
  '<b>',
  '{{x}}',
  ';--',
  'null',
  'true',
  '__proto__',
  'constructor',
  'toString',
];
/** Resource classes. */
export const classes = ['VCPU', 'MEMORY_MB', 'DISK_GB', 'CUSTOM_A', 'NONE_SUCH', 'vcpu'];
/** Traits, as queries name them. */
export const traits = [
  'HW_CPU_X86_AVX2',
  'MISC_SHARES_VIA_AGGREGATE',
  'CUSTOM_T',
  '!HW_CPU_X86_AVX',
  'in:HW_CPU_X86_AVX,CUSTOM_T',
];

/** Mostly a small number. */
export const number = (random: Random) => (random.percent(88) ? `${random.below(9)}` : random.pick(numbers));
/** Mostly the UUID of something that exists. */
export const uuid = (random: Random) =>
  random.percent(94) ? random.pick(uuids) : random.percent(50) ? randomUuid(random) : random.pick(texts);
/** Up to so many. */
export const some = <Each>(random: Random, most: number, make: () => Each): readonly Each[] =>
  Array.from({ length: random.below(most + 1) }, make);
