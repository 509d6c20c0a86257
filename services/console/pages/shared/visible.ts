import { options, type VNode } from 'preact'

// What shows nothing itself and turns, joins or hides the text around it. Ends of lines and tabs are space in a page.
const unseen = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/** Text whose characters are all seen: a right-to-left override is `\u202e`. */
export const visible = (text: string): string => text.replace(unseen, escaped)

function escaped(character: string): string {
  const hex = (character.codePointAt(0) ?? 0).toString(16)
  return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex.padStart(4, '0')}`
}

const attributes = ['title', 'aria-label'] as const
type VisibleAttributes = Partial<Record<(typeof attributes)[number], unknown>>

/**
 * Makes all text visible that any page shows, because most of it is of visitors, and a character such as U+2069 ends the
 * isolation that CSS gives. Values of fields and addresses of links stay what they are.
 */
export function showAllText(): void {
  options.vnode = (vnode: VNode<VisibleAttributes>) => {
    const { type, props }: { type: unknown; props: unknown } = vnode
    if (typeof props === 'string') Object.assign(vnode, { props: visible(props) })
    if (typeof type !== 'string') return
    for (const name of attributes) {
      const text = vnode.props[name]
      if (typeof text === 'string') vnode.props[name] = visible(text)
    }
  }
}
