import type { ComponentChildren } from 'preact'

/** A region that scrolls on its own, also by keyboard, for content wider than the page. */
export function ScrollRegion({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled by keyboard, too
    <section class="scroll" aria-label={label} tabIndex={0}>
      {children}
    </section>
  )
}
