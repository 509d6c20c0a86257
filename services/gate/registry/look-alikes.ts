// Detection of names that look alike, with the confusable skeletons of Unicode (UTS 39).

import unhomoglyph from 'unhomoglyph'

const basicLetters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
// Small capitals, which UTS 39 does not map to A to Z. Where Unicode has none, the capital itself.
const smallCapitals = [...'ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡXʏᴢ']
// First code points of A to Z in circles, in squares, and as regional indicators.
const enclosedLetters = [0x1f150, 0x1f170, 0x1f1e6]

const capitals = new Map<string, string>([
  ...basicLetters.map((letter, i): [string, string] => [smallCapitals[i] ?? letter, letter]),
  ...enclosedLetters.flatMap((first) =>
    basicLetters.map((letter, i): [string, string] => [String.fromCodePoint(first + i), letter]),
  ),
])

/**
 * Returns the skeleton of the text (UTS 39, section 4). Texts that look alike have the same skeleton. Ignores accents
 * on Latin letters, which people overlook.
 */
function skeleton(text: string): string {
  const visible = text.normalize('NFD').replace(/\p{Default_Ignorable_Code_Point}/gu, '')
  return unhomoglyph(visible)
    .normalize('NFD')
    .replace(/[[\p{M}&&\p{sc=Inherited}]--[\u3099\u309a]]/gv, '')
}

/** Returns the skeletons of the text as it is, in lower case, and in upper case, each split into words. */
function skeletonsOf(text: string): string[][] {
  const plain = Array.from(text.normalize('NFKC'), (letter) => capitals.get(letter) ?? letter).join(
    '',
  )
  const forms = [plain, plain.toLowerCase(), plain.toUpperCase()]
  // UTS 39 maps I to l but not i, so unify all three.
  const skeletons = forms.map((form) => skeleton(form).toLowerCase().replaceAll('l', 'i'))
  const split = skeletons.map((form) => form.match(/[\p{L}\p{M}\p{N}]+/gu) ?? [])
  return [...new Map(split.map((words) => [words.join(' '), words])).values()]
}

const join = (words: readonly string[]) => words.join('')

/** Returns true if `matches` accepts any skeleton of the text (words) with any of the name (words joined). */
function matchesAnySkeleton(
  text: string,
  name: string,
  matches: (words: string[], name: string) => boolean,
): boolean {
  const nameSkeletons = skeletonsOf(name).map(join)
  return skeletonsOf(text).some((words) => nameSkeletons.some((form) => matches(words, form)))
}

/** Returns true if text and name look alike, ignoring spaces and punctuation. */
export const looksLike = (text: string, name: string) =>
  matchesAnySkeleton(text, name, (words, form) => join(words) === form)

/** Returns true if the text contains a look-alike of the name anywhere, even across word boundaries. */
export const containsLookAlike = (text: string, name: string) =>
  matchesAnySkeleton(text, name, (words, form) => join(words).includes(form))

/** Returns true if the text contains a look-alike of the name as whole words, or inside one word. */
export const containsWordsLike = (text: string, name: string) =>
  matchesAnySkeleton(
    text,
    name,
    (words, form) => wordRuns(words).includes(form) || words.some((word) => word.includes(form)),
  )

/** Returns true if the first words of the text look like the name. */
export const startsWithWordsLike = (text: string, name: string) =>
  matchesAnySkeleton(text, name, (words, form) =>
    words.some((_, i) => join(words.slice(0, i + 1)) === form),
  )

// Returns all sequences of adjacent words, each joined.
function wordRuns(words: readonly string[]): string[] {
  return words.flatMap((_, start) =>
    words.slice(start).map((_, i) => join(words.slice(start, start + i + 1))),
  )
}
