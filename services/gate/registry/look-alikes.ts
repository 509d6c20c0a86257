import unhomoglyph from 'unhomoglyph'

const basicLetters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
// Letters that UTS 39 maps to nothing, and that people read as capitals.
const smallCapitals = [...'ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡXʏᴢ']
// Where the letters A to Z begin in circles, in squares and as halves of flags.
const enclosedLetters = [0x1f150, 0x1f170, 0x1f1e6]

const capitals = new Map<string, string>([
  ...basicLetters.map((letter, i): [string, string] => [smallCapitals[i] ?? letter, letter]),
  ...enclosedLetters.flatMap((from) =>
    basicLetters.map((letter, i): [string, string] => [String.fromCodePoint(from + i), letter]),
  ),
])

/**
 * The skeleton of UTS 39, section 4: texts that look the same have the same. The marks of Latin letters are left out,
 * because people read over those.
 */
function skeleton(text: string): string {
  const visible = text.normalize('NFD').replace(/\p{Default_Ignorable_Code_Point}/gu, '')
  return unhomoglyph(visible)
    .normalize('NFD')
    .replace(/[[\p{M}&&\p{sc=Inherited}]--[\u3099\u309a]]/gv, '')
}

/** The words of a text in each form in which it may look like another: as it is, in small letters, in capitals. */
function looksOf(text: string): string[][] {
  const plain = Array.from(text.normalize('NFKC'), (letter) => capitals.get(letter) ?? letter).join(
    '',
  )
  const forms = [plain, plain.toLowerCase(), plain.toUpperCase()]
  // A capital i is a small L to the skeleton, and a small i is neither.
  const seen = forms.map((form) => skeleton(form).toLowerCase().replaceAll('l', 'i'))
  const looks = seen.map((form) => form.match(/[\p{L}\p{M}\p{N}]+/gu) ?? [])
  return [...new Map(looks.map((words) => [words.join(' '), words])).values()]
}

const joined = (words: readonly string[]) => words.join('')

/** Whether some form of the text has to some form of the other the relation that `fits` says. */
function reads(
  text: string,
  other: string,
  fits: (words: string[], other: string) => boolean,
): boolean {
  const others = looksOf(other).map(joined)
  return looksOf(text).some((words) => others.some((part) => fits(words, part)))
}

/** Whether both texts look the same, whatever stands between their letters. */
export const looksLike = (text: string, other: string) =>
  reads(text, other, (words, part) => joined(words) === part)

/** Whether the other text can be read in it, be it across words. */
export const readsAnywhere = (text: string, other: string) =>
  reads(text, other, (words, part) => joined(words).includes(part))

/** Whether the other text can be read in it as words of its own, or inside one of its words. */
export const readsAsWords = (text: string, other: string) =>
  reads(
    text,
    other,
    (words, part) => runsOf(words).includes(part) || words.some((word) => word.includes(part)),
  )

/** Whether it begins with the other text, as words. */
export const beginsLike = (text: string, other: string) =>
  reads(text, other, (words, part) => words.some((_, i) => joined(words.slice(0, i + 1)) === part))

function runsOf(words: readonly string[]): string[] {
  return words.flatMap((_, from) =>
    words.slice(from).map((_, i) => joined(words.slice(from, from + i + 1))),
  )
}
