import { readsAsWords } from './look-alikes.ts'

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

// Check marks and shields, and what looks like one.
const mark =
  /[\u221a\u237b\u2611\u26e8\u2705\u2713\u2714\u{10102}\u{1f530}\u{1f5f8}\u{1f5f9}\u{1f6e1}\u{1fbb1}]/u

/** Whether it has a check mark or a shield: the consent page marks so what is verified. */
export const hasMark = (text: string): boolean => mark.test(text)

/** Whether it says, in whatever letters, that it is verified or official. */
export function claimsVerification(text: string): boolean {
  return readsAsWords(text, 'verified') || readsAsWords(text, 'official')
}

// Joiners and selectors belong to pictures, and joiners to words of some scripts: after a virama, and between Arabic letters.
const pictures =
  /\p{Extended_Pictographic}\p{Emoji_Modifier}?\ufe0f?(?:\u200d\p{Extended_Pictographic}\p{Emoji_Modifier}?\ufe0f?)*|[#*0-9]\ufe0f\u20e3/gu
const joinedLetters =
  /(?<=[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca])[\u200c\u200d]|(?<=\p{scx=Arabic})\u200c(?=\p{scx=Arabic})/gu
const unseen = /[\p{Default_Ignorable_Code_Point}\u2800]/u

/** Whether it has characters that nobody sees, but for those that a word or a picture is written with. */
export function hasUnseen(text: string): boolean {
  return unseen.test(text.replace(pictures, '').replace(joinedLetters, ''))
}

// Syllables of some scripts have more than two.
const piled = /(?:(?!\p{scx=Khmer}|\p{scx=Myanmar}|\p{scx=Tibetan})\p{M}){3}|\p{M}{5}/u

/** Whether more than two combining marks stand in a row, which reach over other lines. */
export const pilesMarks = (text: string): boolean => piled.test(text.normalize('NFC'))
