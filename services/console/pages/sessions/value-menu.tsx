import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { hrefWith } from '../shared/address.ts'
import { Copy } from '../shared/copy.tsx'
import {
  added,
  type ChosenFilter,
  changesTo,
  chosenIn,
  type Field,
  filterTitles,
  only,
} from './fields.ts'

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
  const chosen = chosenIn(query)
  const hrefTo = (filters: readonly ChosenFilter[]) => hrefWith(changesTo(filters))
  return (
    <section
      class="value-menu panel"
      popover="auto"
      ref={showBelow}
      aria-label={`${filterTitles[field]} ${value}`}
      onToggle={({ newState }) => newState === 'closed' && closed()}
    >
      <a href={hrefTo(only(chosen, { field, value, isNot: false }))} onClick={close}>
        Only this
      </a>
      <a href={hrefTo(added(chosen, { field, value, isNot: true }))} onClick={close}>
        Not this
      </a>
      <Copy text={value} />
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
  const rightmost = document.documentElement.clientWidth - menu.offsetWidth - margin
  menu.style.left = `${Math.max(margin, Math.min(value.left, rightmost)) + window.scrollX}px`
  menu.style.top = `${value.bottom + window.scrollY}px`
  menu.scrollIntoView({ block: 'nearest' })
  menu.querySelector('a')?.focus()
}
