// Detection of names that look alike, by the confusable skeletons of UTS 39.

import unhomoglyph from 'unhomoglyph'

const basicLetters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
// Letters that UTS 39 does not map, although people read them as capitals.
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
 * Returns the skeleton of UTS 39, section 4, which is equal for texts that look alike. Drops the accents of Latin
 * letters, because people overlook them.
 */
function skeleton(text: string): string {
  const visible = text.normalize('NFD').replace(/\p{Default_Ignorable_Code_Point}/gu, '')
  return unhomoglyph(visible)
    .normalize('NFD')
    .replace(/[[\p{M}&&\p{sc=Inherited}]--[\u3099\u309a]]/gv, '')
}

/** Returns the words of the text's skeletons: as it is, in lower case, and in upper case. */
function skeletonsOf(text: string): string[][] {
  const plain = Array.from(text.normalize('NFKC'), (letter) => capitals.get(letter) ?? letter).join(
    '',
  )
  const forms = [plain, plain.toLowerCase(), plain.toUpperCase()]
  // UTS 39 maps I to l, but leaves i as it is.
  const skeletons = forms.map((form) => skeleton(form).toLowerCase().replaceAll('l', 'i'))
  const split = skeletons.map((form) => form.match(/[\p{L}\p{M}\p{N}]+/gu) ?? [])
  return [...new Map(split.map((words) => [words.join(' '), words])).values()]
}

const join = (words: readonly string[]) => words.join('')

/** Returns true if `matches` holds for a skeleton of the text (words) and one of the name (words joined). */
function matchesAnySkeleton(
  text: string,
  name: string,
  matches: (words: string[], name: string) => boolean,
): boolean {
  const nameSkeletons = skeletonsOf(name).map(join)
  return skeletonsOf(text).some((words) => nameSkeletons.some((form) => matches(words, form)))
}

/** Returns true if both look alike, ignoring spaces and punctuation. */
export const looksLike = (text: string, name: string) =>
  matchesAnySkeleton(text, name, (words, form) => join(words) === form)

/** Returns true if the text contains a look-alike of the name, even across word boundaries. */
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

function wordRuns(words: readonly string[]): string[] {
  return words.flatMap((_, start) =>
    words.slice(start).map((_, i) => join(words.slice(start, start + i + 1))),
  )
}
