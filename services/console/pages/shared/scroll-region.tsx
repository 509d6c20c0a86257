import type { ComponentChildren } from 'preact'

/** A region that scrolls on its own, also by keyboard, for content wider than the page. */
export function ScrollRegion({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: must be focusable to scroll by keyboard
    <section class="scroll" aria-label={label} tabIndex={0}>
      {children}
    </section>
  )
}
