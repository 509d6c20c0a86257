import { containsWordsLike } from './look-alikes.ts'

// The scripts that UAX 31 (table 5) recommends for identifiers.
const scripts =
  `Arabic Armenian Bengali Bopomofo Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han Hangul
  Hebrew Hiragana Kannada Katakana Khmer Lao Latin Malayalam Myanmar Oriya Sinhala Tamil Telugu Thaana Thai Tibetan`
    .split(/\s+/)
    .map((script) => [script])

// Scripts that are commonly mixed with Latin: Japanese, Chinese with Bopomofo, Korean.
const scriptMixes = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Bopomofo'],
  ['Latin', 'Han', 'Hangul'],
]

const patterns = [...scripts, ...scriptMixes].map((names) => {
  const classes = [...names, 'Common', 'Inherited'].map((name) => `\\p{scx=${name}}`)
  return new RegExp(`^[${classes.join('')}]*$`, 'u')
})

/**
 * Returns true for a text in one script or in scripts that are commonly mixed ("Highly Restrictive" in UTS 39, section
 * 5.2). Returns false for a Latin word with a Greek letter.
 */
export function isSingleScript(text: string): boolean {
  return patterns.some((pattern) => pattern.test(text))
}

// Check marks, shields, and their look-alikes.
const verificationMark =
  /[\u221a\u237b\u2611\u26e8\u2705\u2713\u2714\u{10102}\u{1f530}\u{1f5f8}\u{1f5f9}\u{1f6e1}\u{1fbb1}]/u

/** Returns true if the text has a check mark or shield, which the consent page uses to mark verified services. */
export const hasVerificationMark = (text: string): boolean => verificationMark.test(text)

/** Returns true if the text contains a look-alike of "verified" or "official". */
export function claimsVerification(text: string): boolean {
  return containsWordsLike(text, 'verified') || containsWordsLike(text, 'official')
}

// Joiners and variation selectors are legitimate in emoji; joiners also after a virama and between Arabic letters.
const emoji =
  /\p{Extended_Pictographic}\p{Emoji_Modifier}?\ufe0f?(?:\u200d\p{Extended_Pictographic}\p{Emoji_Modifier}?\ufe0f?)*|[#*0-9]\ufe0f\u20e3/gu
const joinedLetters =
  /(?<=[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca])[\u200c\u200d]|(?<=\p{scx=Arabic})\u200c(?=\p{scx=Arabic})/gu
const invisible = /[\p{Default_Ignorable_Code_Point}\u2800]/u

/** Returns true if the text has invisible characters, except those that emoji and some scripts need. */
export function hasInvisibleCharacters(text: string): boolean {
  return invisible.test(text.replace(emoji, '').replace(joinedLetters, ''))
}

// Syllables in Khmer, Myanmar and Tibetan can have up to four marks.
const stackedMarks = /(?:(?!\p{scx=Khmer}|\p{scx=Myanmar}|\p{scx=Tibetan})\p{M}){3}|\p{M}{5}/u

/** Returns true if the text stacks so many combining marks that they overlap other lines. */
export const hasStackedMarks = (text: string): boolean => stackedMarks.test(text.normalize('NFC'))
