import { options, type VNode } from 'preact'

// Characters that are invisible or reorder the text around them. Line breaks and tabs render as spaces.
const invisible = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/** Escapes invisible characters: a right-to-left override becomes `\u202e`. */
export const escapeInvisible = (text: string): string => text.replace(invisible, escaped)

function escaped(character: string): string {
  const hex = (character.codePointAt(0) ?? 0).toString(16)
  return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex.padStart(4, '0')}`
}

const attributes = ['title', 'aria-label'] as const
type VisibleAttributes = Partial<Record<(typeof attributes)[number], unknown>>

/**
 * Escapes invisible characters in all rendered text, because most of it comes from visitors, and a character such as
 * U+2069 ends CSS bidi isolation. Field values and link URLs are not changed.
 */
export function escapeInvisibleEverywhere(): void {
  options.vnode = (vnode: VNode<VisibleAttributes>) => {
    const { type, props }: { type: unknown; props: unknown } = vnode
    if (typeof props === 'string') Object.assign(vnode, { props: escapeInvisible(props) })
    if (typeof type !== 'string') return
    for (const name of attributes) {
      const text = vnode.props[name]
      if (typeof text === 'string') vnode.props[name] = escapeInvisible(text)
    }
  }
}
