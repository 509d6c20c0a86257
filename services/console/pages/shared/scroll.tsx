import type { ComponentChildren } from 'preact'

/** What may be wider than the page, such as a table: it scrolls by itself, by keyboard, too. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled by keyboard, too
    <section class="scroll" aria-label={label} tabIndex={0}>
      {children}
    </section>
  )
}
