import { useEffect } from 'preact/hooks'

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

/** Moves the focus through the links that match the selector with `j` and `k`. */
export function useLinkKeys(selector: string): void {
  usePageKeys(
    ({ key }) => {
      const step = { j: 1, k: -1 }[key]
      const links = [...document.querySelectorAll<HTMLElement>(selector)]
      const focused = links.findIndex((link) => link.matches(':focus'))
      if (step) links[focused + step]?.focus()
    },
    [selector],
  )
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  target.matches('input:not([type="checkbox"]), select, textarea, [contenteditable]')
