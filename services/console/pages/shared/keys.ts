import { useEffect } from 'preact/hooks'
import { hrefWith, navigate } from './address.ts'

/** Calls `handler` for each keydown on the page, except typing in fields and keys with a modifier. */
export function usePageKeys(
  handler: (event: KeyboardEvent) => void,
  deps: readonly unknown[],
): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { target, ctrlKey, metaKey, altKey } = event
      if (!isTyping(target) && !ctrlKey && !metaKey && !altKey) handler(event)
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, deps)
}

/** Focuses the row of a drawer when it closes, unless the focus is elsewhere. A click on text focuses `#main`. */
export function useFocusOnClose(shownId: string | null, focusRow: (id: string) => void): void {
  useEffect(
    () => () => {
      if (shownId && document.activeElement?.matches('body, #main')) focusRow(shownId)
    },
    [shownId],
  )
}

/**
 * Moves the focus through the links that match the selector with `j` and `k`. While the row whose id is in the link's
 * `data-row` is open in a drawer, opens the next one as well, and closes it with Esc.
 */
export function useLinkKeys(selector: string, open: string | null = null): void {
  const findLinks = () => [...document.querySelectorAll<HTMLElement>(selector)]
  const isOpen = (link: HTMLElement) => link.dataset.row === open
  usePageKeys(
    ({ key }) => {
      const step = { j: 1, k: -1 }[key]
      const links = findLinks()
      const focused = links.findIndex((link) => link.matches(':focus'))
      const next = step && links[(focused < 0 ? links.findIndex(isOpen) : focused) + step]
      if (next) {
        next.focus()
        if (open) navigate(hrefWith({ open: next.dataset.row ?? null }), { replace: true })
      }
      if (key === 'Escape' && open) navigate(hrefWith({ open: null }))
    },
    [selector, open],
  )
  useFocusOnClose(open, () => findLinks().find(isOpen)?.focus())
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  target.matches('input:not([type="checkbox"]), select, textarea, [contenteditable]')
