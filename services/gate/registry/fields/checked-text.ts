import { characterCount, isOneLine, isVisible } from '../../../../infra/text.ts'
import { type Member, refused } from './refused.ts'

interface TextRule {
  /** Characters (code points) at most. */
  max: number
  /** Whether, and how often, a line may end. */
  lines?: number
  /** Keep outer spaces, as a drawing needs them. */
  untrimmed?: boolean
}

/**
 * The text without outer spaces, its lines ended by \n; 422 for one that shows nothing, is too long, has control
 * characters, or characters that turn what follows around, so that one name reads as another.
 */
export function checkedText(text: string, member: Member, { max, lines = 1, untrimmed }: TextRule): string {
  const unified = text.replaceAll('\r\n', '\n')
  const kept = untrimmed ? unified : unified.trim()
  const split = kept.split('\n')
  const fits = characterCount(kept) <= max && split.length <= lines
  if (fits && isVisible(kept) && split.every(isOneLine)) return kept
  throw refused(member, { issue: 'invalid', expected: expectedOf({ max, lines }) })
}

function expectedOf({ max, lines }: { max: number; lines: number }): string {
  const size = lines > 1 ? `1-${max} characters in at most ${lines} lines` : `1-${max} characters in one line`
  return `${size}, no control or direction characters`
}
