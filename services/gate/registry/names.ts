// The scripts that UAX 31 (table 5) recommends for identifiers.
const scripts =
  `Arabic Armenian Bengali Bopomofo Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han Hangul
  Hebrew Hiragana Kannada Katakana Khmer Lao Latin Malayalam Myanmar Oriya Sinhala Tamil Telugu Thaana Thai Tibetan`
    .split(/\s+/)
    .map((script) => [script])

// What is written together, with Latin: Japanese, Chinese with Bopomofo, Korean.
const mixtures = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Bopomofo'],
  ['Latin', 'Han', 'Hangul'],
]

const patterns = [...scripts, ...mixtures].map((names) => {
  const classes = [...names, 'Common', 'Inherited'].map((name) => `\\p{scx=${name}}`)
  return new RegExp(`^[${classes.join('')}]*$`, 'u')
})

/**
 * Whether the text is in one script, or in scripts that are written together: "Highly Restrictive" of UTS 39, section
 * 5.2. A Greek letter in a Latin word is not.
 */
export function isOfOneWriting(text: string): boolean {
  return patterns.some((pattern) => pattern.test(text))
}

// Check marks and what looks like one.
const checkMark = /[\u221a\u237b\u2611\u2705\u2713\u2714\u{10102}\u{1f5f8}\u{1f5f9}]/u

/** Whether a name looks like our mark of a verified service, or has our own name in it. */
export function imitatesMark(name: string): boolean {
  const letters = name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '')
  return checkMark.test(name) || letters.includes('tidegate')
}
