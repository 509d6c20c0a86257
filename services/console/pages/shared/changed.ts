// Beside the pages, so that it holds after a reload, too.
const item = 'tidegate-changed'
// As long as the server may share an answer.
const sharedMs = 60_000

/** When the person changed something the last time; 0 where they did not. */
export const changedAt = (): number => Number(sessionStorage.getItem(item) ?? 0)

export const noteChange = (): void => sessionStorage.setItem(item, String(Date.now()))

/** Whether an answer that is shared with others may be older than the newest change. */
export const mustBeNew = (): boolean => Date.now() - changedAt() < sharedMs
