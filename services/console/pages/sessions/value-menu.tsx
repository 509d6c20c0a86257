import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { hrefWith } from '../shared/address.ts'
import { added, type ChosenFilter, changesTo, chosenIn, type Field, filterTitles, only } from './fields.ts'

interface ValueMenuProps {
  query: URLSearchParams
  field: Field
  value: string | null | undefined
  title?: string | null | undefined
  /** What is shown; default: the value. */
  children?: ComponentChildren
}

/** A value that offers to list the sessions that have it, or those that do not, and to be copied. */
export function ValueMenu({ query, field, value, title, children }: ValueMenuProps) {
  const [isOpen, setOpen] = useState(false)
  if (!value) return null
  return (
    <>
      <button
        type="button"
        class="value"
        aria-expanded={isOpen}
        title={title ?? undefined}
        onClick={() => setOpen(true)}
      >
        {children ?? value}
      </button>
      {isOpen && <Menu {...{ query, field, value }} closed={() => setOpen(false)} />}
    </>
  )
}

interface MenuProps {
  query: URLSearchParams
  field: Field
  value: string
  closed: () => void
}

function Menu({ query, field, value, closed }: MenuProps) {
  const [isCopied, setCopied] = useState(false)
  const chosen = chosenIn(query)
  const hrefTo = (change: typeof added, isNot: boolean) =>
    hrefWith(changesTo(change(chosen, { field, value, isNot } satisfies ChosenFilter)))
  const copy = () => navigator.clipboard.writeText(value).then(() => setCopied(true), console.warn)
  return (
    <section
      class="value-menu panel"
      popover="auto"
      ref={showBelow}
      aria-label={`${filterTitles[field]} ${value}`}
      onToggle={({ newState }) => newState === 'closed' && closed()}
    >
      <a href={hrefTo(only, false)} onClick={close}>
        only this
      </a>
      <a href={hrefTo(added, true)} onClick={close}>
        not this
      </a>
      <button type="button" onClick={copy}>
        {isCopied ? 'copied' : 'copy'}
      </button>
    </section>
  )
}

const close = ({ currentTarget }: { currentTarget: HTMLElement }) =>
  currentTarget.closest<HTMLElement>('[popover]')?.hidePopover()

const margin = 8

// One function, because another one at each rendering would show the menu each time. When it closes, the value has the
// focus again.
function showBelow(menu: HTMLElement | null): void {
  const value = menu?.previousElementSibling?.getBoundingClientRect()
  if (!menu || !value) return
  menu.showPopover()
  menu.querySelector('a')?.focus()
  const rightmost = document.documentElement.clientWidth - menu.offsetWidth - margin
  menu.style.left = `${Math.max(margin, Math.min(value.left, rightmost)) + window.scrollX}px`
  menu.style.top = `${value.bottom + window.scrollY}px`
}
