import { InvalidArgumentError } from 'commander'

export const jsonFlag = ['--json', 'print one JSON document', false] as const
export const organizationArgument = ['<organization>', 'its id or slug'] as const

/** A parser that takes one of the words. Commander names the option in its message. */
export function oneOf<Word extends string>(...words: Word[]): (text: string) => Word {
  return (text) => {
    const word = words.find((known) => known === text)
    if (word) return word
    throw new InvalidArgumentError(`It must be one of ${words.join(', ')}.`)
  }
}

/** `a,b`; nothing for the empty text. */
export function list(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)
}

/** Units in 60 seconds. Bounds are the decider's. */
export function limit(text: string): number | 'default' {
  if (text === 'default') return text
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number of units in 60 seconds, or "default".')
}
